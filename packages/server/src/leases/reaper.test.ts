import { describe, expect, test } from "vitest";
import type { LeaseId } from "../ids.ts";
import { LeaseReaper } from "./reaper.ts";
import type { LeaseBeat } from "./store.ts";

const id = "a" as LeaseId;

/** A reaper that looks each second, at what the test says. */
function reaperOver(beats: () => Promise<readonly LeaseBeat[]>, isStill: (dead: LeaseBeat) => boolean = () => true) {
  let nowMs = 0;
  const timers: (() => void)[] = [];
  const reaped: LeaseId[] = [];
  const reaper = new LeaseReaper({
    store: { beats, removeDead: async (dead) => dead.filter(isStill).map((one) => one.id) },
    clock: { monotonicMs: () => nowMs },
    timers: {
      after: (_, work) => {
        timers.push(work);
        return () => undefined;
      },
    },
    onReaped: (ids) => void reaped.push(...ids),
    onTrouble: () => undefined,
  });
  reaper.start();
  const look = async (afterMs = 1_000) => {
    nowMs += afterMs;
    for (const work of timers.splice(0)) work();
    await new Promise((resolve) => setImmediate(resolve));
  };
  return { reaped, look };
}

describe("a reaper", () => {
  test("deletes the lease whose beat it saw stand still for 6 s", async () => {
    const { reaped, look } = reaperOver(async () => [{ id, beat: 7 }]);
    for (let looks = 0; looks < 6; looks += 1) await look();
    expect(reaped).toEqual([]);
    await look();
    expect(reaped).toEqual([id]);
  });

  test("counts anew with every beat", async () => {
    let beat = 0;
    const { reaped, look } = reaperOver(async () => {
      beat += 0.2;
      return [{ id, beat: Math.floor(beat) }];
    });
    for (let looks = 0; looks < 40; looks += 1) await look();
    expect(reaped).toEqual([]);
  });

  test("does not count what it could not see: neither an outage nor its own standing still", async () => {
    let isDown = false;
    const { reaped, look } = reaperOver(async () => {
      if (isDown) throw new Error("the database is away");
      return [{ id, beat: 7 }];
    });
    await look();
    isDown = true;
    for (let looks = 0; looks < 20; looks += 1) await look();
    isDown = false;
    await look();
    await look(60_000);
    expect(reaped).toEqual([]);
  });

  test("tells only of those that it deleted: a beat that came meanwhile keeps its lease", async () => {
    const { reaped, look } = reaperOver(
      async () => [{ id, beat: 7 }],
      () => false,
    );
    for (let looks = 0; looks < 9; looks += 1) await look();
    expect(reaped).toEqual([]);
  });
});

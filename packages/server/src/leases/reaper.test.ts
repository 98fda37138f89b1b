import { describe, expect, test } from "vitest";
import type { LeaseId } from "../ids.ts";
import { LeaseReaper } from "./lease.ts";
import type { LeaseBeat } from "./store.ts";

const id = "a" as LeaseId;

/** A reaper whose own lease beats each second; the test says what the answers are. */
function reaperOver(isStill: (dead: LeaseBeat) => boolean = () => true) {
  let nowMs = 0;
  const reaped: LeaseId[] = [];
  const store = { removeDead: async (dead: readonly LeaseBeat[]) => dead.filter(isStill).map((one) => one.id) };
  const reaper = new LeaseReaper(store, { monotonicMs: () => nowMs });
  const look = async (beat: number, afterMs = 1_000) => {
    nowMs += afterMs;
    reaped.push(...(await reaper.answered([{ id, beat }], nowMs)));
  };
  const fail = () => {
    nowMs += 1_000;
    reaper.unanswered();
  };
  return { reaped, look, fail };
}

describe("a reaper", () => {
  test("deletes the lease whose beat it saw stand still for 6 s", async () => {
    const { reaped, look } = reaperOver();
    for (let looks = 0; looks < 6; looks += 1) await look(7);
    expect(reaped).toEqual([]);
    await look(7);
    expect(reaped).toEqual([id]);
  });

  test("counts anew with every beat", async () => {
    const { reaped, look } = reaperOver();
    for (let looks = 0; looks < 40; looks += 1) await look(Math.floor(looks / 5));
    expect(reaped).toEqual([]);
  });

  test("does not count what it could not see: neither an outage nor its own standing still", async () => {
    const { reaped, look, fail } = reaperOver();
    await look(7);
    for (let beats = 0; beats < 20; beats += 1) fail();
    await look(7);
    await look(7, 60_000);
    expect(reaped).toEqual([]);
  });

  test("tells only of those that it deleted: a beat that came meanwhile keeps its lease", async () => {
    const { reaped, look } = reaperOver(() => false);
    for (let looks = 0; looks < 9; looks += 1) await look(7);
    expect(reaped).toEqual([]);
  });
});

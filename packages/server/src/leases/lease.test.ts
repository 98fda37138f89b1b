import { afterEach, describe, expect, test } from "vitest";
import type { LeaseId } from "../ids.ts";
import { Lease } from "./lease.ts";
import type { LeaseBeat, LeaseStore } from "./store.ts";

/** Others delete it after 6 s: a holder that believes longer in it than this is not alone. */
const believedMs = 5_000;

/** A lease whose clocks, timers and rows are ruled by the test. */
function leaseOver(rows: { beat: LeaseStore["beat"]; isFit?: () => boolean }) {
  const clock = { monotonic: 0, wall: 1_000_000 };
  const timers: (() => void)[] = [];
  const inserted: LeaseId[] = [];
  const removed: LeaseId[] = [];
  const lost: number[] = [];
  const reaped: LeaseId[] = [];
  const lease = new Lease({
    kind: "delivery",
    store: {
      insert: async (id) => void inserted.push(id),
      beat: rows.beat,
      remove: async (id) => void removed.push(id),
      removeDead: async (dead) => dead.map(({ id }) => id),
    },
    clock: { nowMs: () => clock.wall, monotonicMs: () => clock.monotonic },
    timers: {
      after: (_, work) => {
        timers.push(work);
        return () => undefined;
      },
    },
    onTrouble: () => undefined,
    isFit: rows.isFit ?? (() => true),
    onLost: () => void lost.push(clock.monotonic),
    onReaped: (ids) => void reaped.push(...ids),
  });
  const beat = async () => {
    for (const work of timers.splice(0)) work();
    await new Promise((resolve) => setImmediate(resolve));
  };
  const pass = (ms: number) => {
    clock.monotonic += ms;
    clock.wall += ms;
  };
  return { lease, clock, inserted, removed, lost, reaped, beat, pass };
}

describe("a lease", () => {
  const leases: Lease[] = [];
  afterEach(() => Promise.all(leases.splice(0).map((lease) => lease.stop())));

  async function held(beat: LeaseStore["beat"] = async () => [], isFit?: () => boolean) {
    const over = leaseOver(isFit === undefined ? { beat } : { beat, isFit });
    leases.push(over.lease);
    await over.lease.start();
    return over;
  }

  test("is believed for 5 s after the last beat that was answered, and again after the next", async () => {
    const { lease, pass, beat, inserted } = await held();
    pass(believedMs - 1);
    expect(lease.current()).toBe(inserted[0]);
    pass(1);
    expect(lease.current()).toBeUndefined();
    await beat();
    expect(lease.current()).toBe(inserted[0]);
  });

  test("is counted from before a beat was sent, and not from its answer", async () => {
    const answer = Promise.withResolvers<readonly LeaseBeat[]>();
    const { lease, pass, beat } = await held(() => answer.promise);
    await beat();
    pass(4_000);
    answer.resolve([]);
    await beat();
    expect(lease.remainingMs()).toBe(1_000);
  });

  test("is believed no longer when the machine was suspended: its wall clock went on", async () => {
    const { lease, clock } = await held();
    clock.wall += believedMs;
    expect(lease.current()).toBeUndefined();
  });

  test("is believed no longer than 5 s though the wall clock was set back", async () => {
    const { lease, clock } = await held();
    clock.wall -= 3_600_000;
    expect(lease.remainingMs()).toBe(believedMs);
    clock.monotonic += believedMs;
    expect(lease.current()).toBeUndefined();
  });

  test("begins anew under another id when its row is gone", async () => {
    const { lease, inserted, lost, beat } = await held(async () => undefined);
    await beat();
    expect(lost).toHaveLength(1);
    expect(inserted).toHaveLength(2);
    expect(inserted[1]).not.toBe(inserted[0]);
    expect(lease.current()).toBe(inserted[1]);
  });

  test("is given up while its holder is not fit, and held under another id when it is again", async () => {
    let isFit = true;
    const { lease, inserted, removed, lost, beat } = await held(undefined, () => isFit);
    await beat();
    expect(lease.current()).toBe(inserted[0]);
    isFit = false;
    for (let beats = 0; beats < 3; beats += 1) await beat();
    expect(lease.current()).toBeUndefined();
    expect(removed).toEqual(inserted);
    expect(lost).toHaveLength(1);
    isFit = true;
    await beat();
    expect(inserted).toHaveLength(2);
    expect(lease.current()).toBe(inserted[1]);
  });

  test("deletes another one that it saw stand still for 6 s of its own beats", async () => {
    const dead = "dead" as LeaseId;
    const { lease, reaped, beat, pass } = await held(async () => [{ id: dead, beat: 7 }]);
    for (let beats = 0; beats < 7; beats += 1) {
      expect(reaped).toEqual([]);
      pass(1_000);
      await beat();
    }
    expect(reaped).toEqual([dead]);
    expect(lease.current()).toBeDefined();
  });
});

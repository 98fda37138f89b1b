import { afterEach, describe, expect, test } from "vitest";
import type { LeaseId } from "../ids.ts";
import { Lease } from "./lease.ts";
import type { LeaseBeat, LeaseKind, LeaseStore } from "./store.ts";

/** Others delete it after 6 s: a holder that believes longer in it than this is not alone. */
const believedMs = 5_000;

/** A lease whose clocks, timers and rows are ruled by the test. */
function leaseOver(answer: LeaseStore["beat"]) {
  const clock = { monotonic: 0, wall: 1_000_000 };
  const over = { kind: "delivery" as LeaseKind };
  let timers: { readonly ms: number; readonly work: () => void }[] = [];
  const inserted: LeaseId[] = [];
  const removed: LeaseId[] = [];
  const kinds: LeaseKind[] = [];
  const lost: number[] = [];
  const reaped: LeaseId[] = [];
  const lease = new Lease({
    kind: () => over.kind,
    store: {
      insert: async (id, kind) => {
        inserted.push(id);
        kinds.push(kind);
      },
      beat: (id, kind) => {
        kinds.push(kind);
        return answer(id, kind);
      },
      remove: async (id) => void removed.push(id),
      removeDead: async (dead) => dead.map(({ id }) => id),
    },
    clock: { nowMs: () => clock.wall, monotonicMs: () => clock.monotonic },
    timers: {
      after: (ms, work) => {
        const timer = { ms, work };
        timers.push(timer);
        return () => {
          timers = timers.filter((one) => one !== timer);
        };
      },
    },
    onTrouble: () => undefined,
    onLost: () => void lost.push(clock.monotonic),
    onReaped: (ids) => void reaped.push(...ids),
  });
  const beat = async () => {
    for (const { work } of timers.splice(0)) work();
    await new Promise((resolve) => setImmediate(resolve));
  };
  const pass = (ms: number) => {
    clock.monotonic += ms;
    clock.wall += ms;
  };
  const beatsInMs = () => timers.map(({ ms }) => ms);
  return { lease, clock, over, inserted, removed, kinds, lost, reaped, beat, pass, beatsInMs };
}

describe("a lease", () => {
  const leases: Lease[] = [];
  afterEach(() => Promise.all(leases.splice(0).map((lease) => lease.stop())));

  async function held(answer: LeaseStore["beat"] = async () => []) {
    const made = leaseOver(answer);
    leases.push(made.lease);
    await made.lease.start();
    return made;
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

  test("says of which kind it is at its start and at each beat, and stays the same lease", async () => {
    const { lease, over, inserted, removed, kinds, lost, beat } = await held();
    await beat();
    over.kind = "api";
    await beat();
    await beat();
    over.kind = "delivery";
    await beat();
    expect(kinds).toEqual(["delivery", "delivery", "api", "api", "delivery"]);
    expect([inserted, removed, lost]).toEqual([[lease.current()], [], []]);
  });

  test("begins anew under the kind of that moment", async () => {
    const { over, kinds, beat } = await held(async () => undefined);
    over.kind = "api";
    await beat();
    expect(kinds).toEqual(["delivery", "api", "api"]);
  });

  test("beats at once when its kind has changed, and then once a second again", async () => {
    const { lease, over, kinds, beat, beatsInMs } = await held();
    await beat();
    expect(beatsInMs()).toEqual([1_000]);
    over.kind = "api";
    lease.kindChanged();
    expect(beatsInMs()).toEqual([0]);
    await beat();
    expect(kinds.at(-1)).toBe("api");
    expect(beatsInMs()).toEqual([1_000]);
  });

  test("has one beat under way although its kind changes, and none before its start or after its end", async () => {
    const answer = Promise.withResolvers<readonly LeaseBeat[]>();
    const { lease, kinds, beat, beatsInMs } = await held(() => answer.promise);
    await beat();
    lease.kindChanged();
    const meanwhile = beatsInMs();
    answer.resolve([]);
    await beat();
    expect(meanwhile).toEqual([]);
    expect(kinds).toHaveLength(2);
    expect(beatsInMs()).toEqual([1_000]);
    await lease.stop();
    lease.kindChanged();
    expect(beatsInMs()).toEqual([]);
    const idle = leaseOver(async () => []);
    idle.lease.kindChanged();
    expect(idle.beatsInMs()).toEqual([]);
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

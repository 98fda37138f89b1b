import { afterEach, describe, expect, test } from "vitest";
import { type LeaseId, newId } from "../ids.ts";
import { Lease, type LeaseBeat, type LeaseKind, LeaseReaper, type LeaseStore } from "./lease.ts";

/** Others delete it after 6 s: a holder that believes longer in it than this is not alone. */
const believedMs = 5_000;

/** A lease whose clocks, timers and rows are ruled by the test. */
function leaseOver(answer: LeaseStore["beat"]) {
  const clock = { monotonic: 0, wall: 1_000_000 };
  const over = { kind: "delivery" as LeaseKind, isAway: false };
  let timers: { readonly ms: number; readonly work: () => void }[] = [];
  const inserted: LeaseId[] = [];
  const removed: LeaseId[] = [];
  const kinds: LeaseKind[] = [];
  const lost: number[] = [];
  const reaped: LeaseId[] = [];
  const troubles: unknown[] = [];
  const lease = new Lease({
    store: {
      insert: async (id, kind) => {
        inserted.push(id);
        kinds.push(kind);
      },
      beat: (id, kind) => {
        kinds.push(kind);
        return answer(id, kind);
      },
      remove: async (id) => {
        if (over.isAway) throw new Error("away");
        removed.push(id);
      },
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
    onTrouble: (error) => void troubles.push(error),
  });
  const start = () =>
    lease.start({
      kind: () => over.kind,
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
  return { lease, start, clock, over, inserted, removed, kinds, lost, reaped, troubles, beat, pass, beatsInMs };
}

describe("a lease", () => {
  const leases: Lease[] = [];
  afterEach(() => Promise.all(leases.splice(0).map((lease) => lease.stop())));

  async function held(answer: LeaseStore["beat"] = async () => []) {
    const made = leaseOver(answer);
    leases.push(made.lease);
    await made.start();
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

  test("that ran out while the process stood still is held if its row is there", async () => {
    const over = { hasRow: true };
    const { lease, pass, inserted } = await held(async () => (over.hasRow ? [] : undefined));
    const [id = newId()] = inserted;
    pass(believedMs + 700);
    expect(lease.current()).toBeUndefined();
    expect(await Promise.all([lease.isHeld(id), lease.isHeld(newId())])).toEqual([true, false]);
    expect(lease.current()).toBe(id);
    pass(believedMs);
    over.hasRow = false;
    expect(await lease.isHeld(id)).toBe(false);
    expect(lease.current()).toBe(inserted[1]);
  });

  test("that ran out while a beat was on its way is held by another beat, and not while there is none", async () => {
    const answers = [Promise.withResolvers<readonly LeaseBeat[]>(), Promise.withResolvers<readonly LeaseBeat[]>()];
    let beats = 0;
    const { lease, pass, beat, inserted, troubles } = await held(async () => {
      beats += 1;
      return answers[beats - 1]?.promise ?? Promise.reject(new Error("away"));
    });
    await beat();
    pass(believedMs + 700);
    const isHeld = lease.isHeld(inserted[0] ?? newId());
    for (const { resolve } of answers) resolve([]);
    expect([await isHeld, beats]).toEqual([true, 2]);
    pass(believedMs);
    expect([await lease.isHeld(inserted[0] ?? newId()), troubles.length]).toEqual([false, 2]);
  });

  test("ends at its stop, also if its row cannot be removed", async () => {
    const { lease, over, troubles } = await held();
    over.isAway = true;
    await lease.stop();
    expect([lease.remainingMs(), troubles]).toEqual([0, [new Error("away")]]);
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

  test("deletes another one that it saw stand still for 6 s of its own beats that were answered", async () => {
    const dead = "dead" as LeaseId;
    let beats = 0;
    const { lease, reaped, beat, pass } = await held(async () => {
      if (beats === 3) throw new Error("away");
      return [{ id: dead, beat: 7 }];
    });
    for (; beats < 9; beats += 1) {
      expect(reaped).toEqual([]);
      pass(1_000);
      await beat();
    }
    expect(reaped).toEqual([dead]);
    expect(lease.current()).toBeDefined();
  });

  test("does not count the time before a beat of its own that was not answered", async () => {
    let beats = 0;
    const { reaped, beat, pass } = await held(async () => {
      beats += 1;
      if (beats % 2 === 0) throw new Error("away");
      return [{ id: "living" as LeaseId, beat: 7 }];
    });
    for (let times = 0; times < 40; times += 1) {
      pass(1_000);
      await beat();
    }
    expect([beats, reaped]).toEqual([40, []]);
  });
});

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

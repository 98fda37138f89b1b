import { expect, test } from "vitest";
import type { Acquirer, AcquirerHealth } from "../acquirer/acquirer.ts";
import { onlyAcquirer } from "../acquirer/only-acquirer.fixture.ts";
import { SimulatedAcquirer } from "../acquirer/simulator/simulator.ts";
import type { NewEvent } from "../telemetry/events.ts";
import { AcquirerWatch, ShardWatch, watchBacklog } from "./watches.ts";

const up: AcquirerHealth = { ok: true, detail: "signed on at host:5000 for 3 s" };
const down: AcquirerHealth = { ok: false, detail: "host:5000: ECONNREFUSED" };

function withHealth(health: () => AcquirerHealth): Acquirer {
  return Object.assign(new SimulatedAcquirer(), { health });
}

async function recordedOf(states: readonly AcquirerHealth[]): Promise<string[]> {
  const recorded: string[] = [];
  let state = up;
  const watch = new AcquirerWatch(onlyAcquirer(withHealth(() => state)), {
    record: async ({ kind, detail }) => void recorded.push(`${kind}: ${detail["detail"]}`),
  });
  for (const next of states) {
    state = next;
    await watch.check();
  }
  return recorded;
}

test("an acquirer that becomes unreachable is reported once, and so is its return", async () => {
  expect(await recordedOf([up, down, down, down, up, up, up])).toEqual([
    "acquirer_down: host:5000: ECONNREFUSED",
    "acquirer_up: signed on at host:5000 for 3 s",
  ]);
});

test("a connection that is re-established immediately is not reported", async () => {
  expect(await recordedOf([up, down, up, down, up, up])).toEqual([]);
});

test("one that was removed and is added again is reported anew", async () => {
  const recorded: string[] = [];
  let names: readonly string[] = ["bank"];
  const acquirer = withHealth(() => down);
  const acquirers = { of: () => acquirer, has: () => true, names: () => names };
  const watch = new AcquirerWatch(acquirers, { record: async ({ kind }) => void recorded.push(kind) });
  for (const next of [["bank"], ["bank"], [], ["bank"], ["bank"]]) {
    names = next;
    await watch.check();
  }
  expect(recorded).toEqual(["acquirer_down", "acquirer_down"]);
});

test("one that is unreachable from the start is reported", async () => {
  expect(await recordedOf([down, down])).toEqual(["acquirer_down: host:5000: ECONNREFUSED"]);
});

/** Keeps what is recorded, and within which time it is not recorded again. */
function recording() {
  const events: NewEvent[] = [];
  const withinMs: number[] = [];
  const recordOnce = async (event: NewEvent, ms: number) => {
    events.push(event);
    withinMs.push(ms);
  };
  return { events, withinMs, recordOnce };
}

async function backlogEvents(oldestMs: number | undefined, alertAfterS: number) {
  const recorded = recording();
  await watchBacklog({ count: 7, oldestMs }, alertAfterS, recorded);
  return recorded;
}

test("a notification that is pending for too long is reported once an hour, with its age and how many wait", async () => {
  const { events, withinMs } = await backlogEvents(Date.now() - 120_000, 60);
  expect(events).toMatchObject([{ kind: "oldest_pending", partnerId: null, detail: { count: 7 } }]);
  expect(events[0]?.detail["oldestSeconds"]).toBeGreaterThanOrEqual(120);
  expect(withinMs).toEqual([3_600_000]);
});

test("a younger one, or none, is not reported", async () => {
  expect((await backlogEvents(Date.now() - 120_000, 600)).events).toEqual([]);
  expect((await backlogEvents(undefined, 60)).events).toEqual([]);
});

function watchingShards() {
  const recorded = recording();
  let nowMs = 0;
  const watch = new ShardWatch(recorded, () => nowMs);
  const checkAt = async (atMs: number, unowned: number | readonly number[]) => {
    nowMs = atMs;
    await watch.check(typeof unowned === "number" ? Array.from({ length: unowned }, (_, shard) => shard) : unowned);
  };
  return { ...recorded, checkAt };
}

test("shards without an owner for 15 s are reported once in ten minutes, with how many and for how long", async () => {
  const { checkAt, events, withinMs } = watchingShards();
  await checkAt(1_000, 256);
  await checkAt(15_999, 200);
  expect(events).toEqual([]);
  await checkAt(17_500, 12);
  const detail = { shards: 12, seconds: 16 };
  expect(events).toEqual([{ kind: "shards_unowned", partnerId: null, subjectId: null, detail }]);
  expect(withinMs).toEqual([600_000]);
});

test("a take-over in between begins the time anew", async () => {
  const { checkAt, events } = watchingShards();
  await checkAt(0, 5);
  await checkAt(14_000, 0);
  await checkAt(15_000, 5);
  await checkAt(29_000, 5);
  expect(events).toEqual([]);
  await checkAt(30_000, 5);
  expect(events).toHaveLength(1);
});

test("shards that change hands are no alert, although at each look another one has no owner", async () => {
  const { checkAt, events } = watchingShards();
  for (let nth = 0; nth < 10; nth += 1) await checkAt(nth * 5_000, [nth, nth + 1]);
  expect(events).toEqual([]);
});

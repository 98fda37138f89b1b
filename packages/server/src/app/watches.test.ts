import { expect, onTestFinished, test } from "vitest";
import type { Acquirer, AcquirerHealth, Acquirers } from "../acquirer/acquirer.ts";
import { onlyAcquirer } from "../acquirer/only-acquirer.fixture.ts";
import { SimulatedAcquirer } from "../acquirer/simulator/simulator.ts";
import type { NewEvent } from "../events.ts";
import { createLog } from "../log.ts";
import { acquirerDetails, acquirerLinks } from "./health.ts";
import { AcquirerWatch, causeOf, maintainPartitions, ShardWatch, watchBacklog, watchLoop } from "./watches.ts";

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

test("one that is unreachable from the start is reported", async () => {
  expect(await recordedOf([down, down])).toEqual(["acquirer_down: host:5000: ECONNREFUSED"]);
});

function several(acquirers: Readonly<Record<string, Acquirer>>): Acquirers {
  return {
    of: (name) => acquirers[name] ?? new SimulatedAcquirer(),
    has: (name) => Object.hasOwn(acquirers, name),
    names: () => Object.keys(acquirers),
  };
}

test("/readyz names the acquirer, and warns if it is unreachable", () => {
  const detailOf = (name: string, acquirer: Acquirer | null) =>
    acquirerDetails(name, onlyAcquirer(acquirer)).get("acquirer");
  expect(detailOf("simulator", new SimulatedAcquirer())).toBe("simulator");
  expect(detailOf("none: commands are refused", null)).toBe("none: commands are refused");
  const bank = withHealth(() => up);
  expect(detailOf("iso8583, bank", bank)).toBe("iso8583, bank: signed on at host:5000 for 3 s");
  const away = withHealth(() => down);
  expect(detailOf("iso8583, bank", away)).toBe("warning: iso8583, bank: host:5000: ECONNREFUSED");
});

test("each registered acquirer has its own state in /readyz, metrics and events", async () => {
  const acquirers = several({
    "": new SimulatedAcquirer(),
    first: withHealth(() => up),
    second: withHealth(() => down),
  });
  expect([...acquirerDetails("simulator", acquirers)]).toEqual([
    ["acquirer", "simulator"],
    ["acquirer first", "iso8583: signed on at host:5000 for 3 s"],
    ["acquirer second", "warning: iso8583: host:5000: ECONNREFUSED"],
  ]);
  expect(Object.fromEntries(acquirerLinks(acquirers))).toEqual({ default: true, first: true, second: false });
  const recorded: unknown[] = [];
  const watch = new AcquirerWatch(acquirers, {
    record: async ({ kind, detail }) => void recorded.push([kind, detail]),
  });
  await watch.check();
  await watch.check();
  expect(recorded).toEqual([["acquirer_down", { acquirer: "second", detail: "host:5000: ECONNREFUSED" }]]);
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
  await watchBacklog({ count: 7, parked: 0, oldestMs }, alertAfterS, recorded);
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

test("history that is kept longer than it is set is logged and recorded, and stops no start", async () => {
  const lines: string[] = [];
  const log = createLog("info", { write: (line) => void lines.push(line) });
  const recorded: NewEvent[] = [];
  const maintained = { created: 0, dropped: 0, waiting: [], troubles: [], daysAhead: 14 };
  const partitions = { maintain: async () => ({ ...maintained, prolonged: { days: 10, scheduleDays: 3 } }) };
  await maintainPartitions(partitions, { record: async (event) => void recorded.push(event) }, log);
  expect(lines.join()).toContain("Set PAYBELL_HISTORY_DAYS to at least 10");
  expect(recorded).toEqual([
    { kind: "history_waiting", partnerId: null, subjectId: null, detail: { waiting: [], keptDays: 10 } },
  ]);
});

test("an event loop that was blocked for more than a second is logged with its cause", async () => {
  const lines: (readonly [object, string])[] = [];
  onTestFinished(watchLoop({ warn: (fields, message) => void lines.push([fields, message]) }));
  await new Promise((resolve) => setTimeout(resolve, 300));
  const untilMs = performance.now() + 2_000;
  while (performance.now() < untilMs);
  await expect.poll(() => lines.map(([, message]) => message)).toContain("the event loop was blocked");
  const [[fields] = []] = lines as readonly (readonly [{ blockedMs: number; cause: string }, string])[];
  expect(fields?.blockedMs).toBeGreaterThan(1_000);
  expect(fields?.cause).toBeDefined();
});

test("the cause is what took most of the time", () => {
  expect(causeOf({ forMs: 2_000, processorMs: 2_900, collectingMs: 1_500 })).toContain("garbage collection");
  expect(causeOf({ forMs: 2_000, processorMs: 1_900, collectingMs: 100 })).toContain("work of its own");
  expect(causeOf({ forMs: 2_000, processorMs: 200, collectingMs: 20 })).toContain("the machine");
});

import { expect, onTestFinished, test, vi } from "vitest";
import { openTestDatabase } from "../../../../test/support/connections.ts";
import { onlyAcquirer } from "../acquirer/only-acquirer.fixture.ts";
import { SimulatedAcquirer } from "../acquirer/simulator/simulator.ts";
import { readConfig } from "../config/config.ts";
import type { NewEvent } from "../telemetry/events.ts";
import { createLog } from "../telemetry/log.ts";
import { createMetrics } from "../telemetry/metrics.ts";
import type { Infrastructure } from "./infrastructure.ts";
import { type MaintenanceParts, maintainPartitions, startMaintenance } from "./maintenance.ts";

const database = await openTestDatabase();
const maintained = { created: 0, dropped: 0, waiting: [], troubles: [], daysAhead: 14, prolonged: undefined };

test("history that is kept longer than it is set is logged and recorded, and stops no start", async () => {
  const lines: string[] = [];
  const log = createLog("info", { write: (line) => void lines.push(line) });
  const recorded: NewEvent[] = [];
  const partitions = { maintain: async () => ({ ...maintained, prolonged: { days: 10, scheduleDays: 3 } }) };
  await maintainPartitions(partitions, { record: async (event) => void recorded.push(event) }, log);
  expect(lines.join()).toContain("Set PAYBELL_HISTORY_DAYS to at least 10");
  expect(recorded).toEqual([
    { kind: "history_waiting", partnerId: null, subjectId: null, detail: { waiting: [], keptDays: 10 } },
  ]);
});

test.each<[string, object, readonly string[], string]>([
  ["two days are prepared", { daysAhead: 2 }, ["partitions_short"], ""],
  ["three days are prepared", { daysAhead: 3 }, [], ""],
  ["a day waits for what is pending", { waiting: ["2026-11-20"] }, ["history_waiting"], ""],
  ["a day could not be made", { troubles: [new Error("no room")] }, [], "no room"],
])("maintained history where %s", async (_, result, kinds, logged) => {
  const [lines, recorded]: [string[], string[]] = [[], []];
  const partitions = { maintain: async () => ({ ...maintained, ...result }) };
  const log = createLog("info", { write: (line) => void lines.push(line) });
  await maintainPartitions(partitions, { record: async ({ kind }) => void recorded.push(kind) }, log);
  expect(recorded).toEqual(kinds);
  expect(lines.join()).toContain(logged);
});

test("each periodic task is done at its time, also after it failed, and none after the stop", async () => {
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
  onTestFinished(() => void vi.useRealTimers());
  const metrics = createMetrics();
  onTestFinished(() => metrics.close());
  const done = new Map<string, number>();
  const does =
    <Value>(what: string, value?: Value) =>
    async () => {
      done.set(what, (done.get(what) ?? 0) + 1);
      if (done.get(what) === 1) throw new Error("the database is away");
      return value;
    };
  const failures: string[] = [];
  const acquirer = Object.assign(new SimulatedAcquirer(), {
    health: () => {
      done.set("acquirers", (done.get("acquirers") ?? 0) + 1);
      return { ok: true, detail: "" };
    },
  });
  const infrastructure = {
    ...{ database, metrics, config: readConfig({}), log: createLog("info", { write: () => undefined }) },
    alerts: { record: async () => undefined, recordOnce: async () => undefined },
    closing: [],
    warn: (failure: string) => () => void failures.push(failure),
  };
  const stop = startMaintenance(
    infrastructure as unknown as Infrastructure,
    {
      ledger: {},
      serviceStatus: { pending: does("pending", { count: 0 }), unownedShards: does("shards", []) },
      partitions: { maintain: does("history", maintained) },
      acquirers: onlyAcquirer(acquirer),
      callbackCas: [],
      audit: { head: does("audit head"), dropBefore: does("old audit", 0) },
      learnAuditKeys: does("audit keys"),
      rowSeals: { sealDatabase: does("row seals") },
      contents: {},
      sweepCards: does("cards"),
    } as unknown as MaintenanceParts,
  );
  await vi.advanceTimersByTimeAsync(2 * 3_600_000);
  const hourly = { history: 2, "audit head": 2, "row seals": 2 };
  const often = { acquirers: 1_440, shards: 1_440, pending: 720, cards: 240, "audit keys": 120 };
  expect(Object.fromEntries(done)).toEqual({ ...hourly, ...often, "old audit": 3 });
  expect(new Set(failures).size).toBe(8);
  await stop();
  expect(done.get("audit head")).toBe(3);
  await vi.advanceTimersByTimeAsync(3_600_000);
  expect(done.get("history")).toBe(2);
});

import { expect, onTestFinished, test, vi } from "vitest";
import { openOwnDatabase, openTestDatabase } from "../../../../test/support/connections.ts";
import { temporaryFolder } from "../../../../test/support/temporary.ts";
import { onlyAcquirer } from "../acquirer/only-acquirer.fixture.ts";
import { SimulatedAcquirer } from "../acquirer/simulator/simulator.ts";
import { systemClock } from "../clock.ts";
import { readConfig } from "../config/config.ts";
import { lowestId } from "../ids.ts";
import { loopbackCertificate } from "../sandbox/credentials.ts";
import { insertPartner } from "../store/rows.fixture.ts";
import { dayMs } from "../store/schema/partitions.ts";
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

test("old figures and transactions are dropped, certificates looked at, and what lacks a MAC is sealed, at the start", async () => {
  const metrics = createMetrics();
  onTestFinished(() => metrics.close());
  const recorded: NewEvent[] = [];
  const record = async (event: NewEvent) => void recorded.push(event);
  const dropBefore = Promise.withResolvers<number>();
  const required = Promise.withResolvers<number>();
  const config = readConfig({ PAYBELL_LEDGER_DAYS: "100", PAYBELL_AUDIT_DAYS: "200" });
  const own = await openOwnDatabase();
  const { pool } = own;
  const partner = await insertPartner(pool);
  const nowMs = Date.now();
  for (const daysAgo of [99, 101]) {
    await pool.query(
      `INSERT INTO transactions (partner_id, id, origin, command, state, chain_id, facts, req_id, created_at, completed_at)
       VALUES ($1, $2::uuid, 'command', 'SALE', 'SUCCESS', $2::uuid, '{}', $2::text, $3, $3)`,
      [partner, lowestId(nowMs - daysAgo * dayMs), new Date(nowMs - daysAgo * dayMs)],
    );
  }
  await pool.query(
    `INSERT INTO delivery_figures (partner_id, grain, at, accepted, failed, parked, attempt_ms, delivery_ms)
     VALUES ($1, 'hour', now() - interval '30 days', 1, 0, 0, '{}', '{}')`,
    [partner],
  );
  await pool.query("SELECT seal_database(1)");
  const { cert } = await loopbackCertificate(temporaryFolder(), { ...systemClock, nowMs: () => nowMs - 355 * dayMs });
  const stop = startMaintenance(
    {
      ...{ database: own, metrics, config, log: createLog("silent", { write: () => undefined }), closing: [] },
      ...{ alerts: { record, recordOnce: record }, warn: () => () => undefined },
    } as unknown as Infrastructure,
    {
      callbackCas: [cert],
      audit: {
        dropBefore: async (beforeMs: number) => {
          dropBefore.resolve(beforeMs);
          return 0;
        },
        head: async () => undefined,
      },
      contents: { requiredSince: (sinceMs: number) => required.resolve(sinceMs) },
    } as unknown as MaintenanceParts,
  );
  onTestFinished(stop);
  const left = async (table: string) =>
    (await pool.query(`SELECT FROM ${table} WHERE partner_id = $1`, [partner])).rowCount;
  await expect.poll(() => left("transactions")).toBe(1);
  await expect.poll(() => left("delivery_figures")).toBe(0);
  await expect.poll(() => recorded).toMatchObject([{ kind: "certificate_ending" }]);
  expect(await required.promise).toBe(Number.NEGATIVE_INFINITY);
  expect((nowMs - (await dropBefore.promise)) / dayMs).toBeCloseTo(200, 1);
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
  const alerted = new Set<string>();
  const acquirer = Object.assign(new SimulatedAcquirer(), {
    health: () => {
      done.set("acquirers", (done.get("acquirers") ?? 0) + 1);
      return { ok: true, detail: "" };
    },
  });
  const infrastructure = {
    ...{ database, metrics, log: createLog("info", { write: () => undefined }) },
    config: readConfig({ PAYBELL_OLDEST_PENDING_ALERT_SECONDS: "60" }),
    alerts: { record: async () => undefined, recordOnce: async ({ kind }: NewEvent) => void alerted.add(kind) },
    closing: [],
    warn: (failure: string) => () => void failures.push(failure),
  };
  const stop = startMaintenance(
    infrastructure as unknown as Infrastructure,
    {
      ledger: {},
      serviceStatus: {
        pending: does("pending", { count: 1, oldestMs: Date.now() - 120_000 }),
        unownedShards: does("shards", []),
      },
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
  expect([...alerted]).toContain("oldest_pending");
  await stop();
  expect(done.get("audit head")).toBe(3);
  await vi.advanceTimersByTimeAsync(3_600_000);
  expect(done.get("history")).toBe(2);
});

import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { createDatabase, type TestDatabase } from "../../../../test/support/database.ts";
import type { Attempt, Claimed, ClaimLimits, Outcome } from "../delivery/store.ts";
import { newId, type PartnerId } from "../ids.ts";
import type { Instance } from "../instance.ts";
import { PostgresCompletions } from "./completions.ts";
import { type Database, openDatabase } from "./database.ts";
import { PostgresDeliveries } from "./deliveries.ts";
import { PostgresEndpoints } from "./endpoints.ts";
import { PostgresNotifications } from "./notifications.ts";
import { Partitions } from "./partitions.ts";
import { type CarriedOut, watchPlans } from "./plans.fixture.ts";
import {
  createHistory,
  insertInstance,
  insertPartner,
  sampleInit,
  sampleNotification,
  sampleReport,
} from "./rows.fixture.ts";
import { PostgresComparisons } from "./settlement-comparisons.ts";
import { PostgresTransactions } from "./transactions.ts";

/** Pending rows, with a notification and a transaction each. TEST_ROWS=1000000 for the largest. */
const sizes = [0, 1_000, Number(process.env["TEST_ROWS"] ?? 100_000)];
const together = 20;
/** Rows, and pages, that one statement may touch for each row that it was asked for. Measured: 23 pages at most. */
const touchedMax = 50;
/** So that each of the engine's connections ran each statement more than five times. */
const runsToSettle = 40;

let database: TestDatabase;
let connections: Database;
let engine: CarriedOut[];
let people: CarriedOut[];
let completions: PostgresCompletions;
let deliveries: PostgresDeliveries;
let comparisons: PostgresComparisons;
let endpoints: PostgresEndpoints;
let transactions: PostgresTransactions;
let partnerId: PartnerId;
let instance: Instance;
let deadInstance: Instance;

beforeAll(async () => {
  database = await createDatabase();
  connections = openDatabase(database.url, { connectionsMax: 8, onIdleError: () => {} });
  const { pool } = connections;
  engine = watchPlans(connections.engine);
  people = watchPlans(pool);
  await createHistory(pool);
  // As they are when a service was just begun: every table looks empty, and nobody looks again.
  for (const table of ["pending", "transactions", "notifications_now", "attempts_now", "endpoints"]) {
    await pool.query(`ALTER TABLE ${table} SET (autovacuum_enabled = off)`);
  }
  await pool.query("ANALYZE");
  partnerId = await insertPartner(pool);
  instance = await insertInstance(pool);
  deadInstance = await insertInstance(pool, -1_000);
  completions = new PostgresCompletions(connections.engine, { onDoubtfulReport: () => {} });
  deliveries = new PostgresDeliveries(connections.engine);
  comparisons = new PostgresComparisons(connections);
  endpoints = new PostgresEndpoints(connections);
  transactions = new PostgresTransactions(connections);
});

afterAll(async () => {
  await connections.close();
  await database.drop();
});

beforeEach(() => {
  engine.length = 0;
  people.length = 0;
});

/** Of all that the backlog holds. */
const largeBatch = newId();

/** Fills up to `count` rows of the backlog, all of them due. */
async function fill(from: number, count: number): Promise<void> {
  const id = "(left($2::text, 24) || lpad(to_hex(i), 12, '0'))::uuid";
  const each = `FROM generate_series($3::integer + 1, $4::integer) AS i`;
  const values = [partnerId, newId(), from, count];
  await connections.pool.query(
    `WITH history AS (
       INSERT INTO notifications (partner_id, id, transaction_id, chain_id, command, content)
       SELECT $1::uuid, ${id}, ${id}, ${id}, 'SALE', '{"kind":"card","fields":{}}' ${each}),
     ledger AS (
       INSERT INTO transactions (partner_id, id, origin, command, state, req_id, chain_id, facts, notification_id, tid)
       SELECT $1, ${id}, 'command', 'SALE', 'SUCCESS', 'r' || i, ${id}, '{"fields":{}}', ${id}, 'T0000001' ${each})
     INSERT INTO pending (partner_id, id, chain_id, due_at, claim_no, bytes, follows, batch_id)
     SELECT $1, ${id}, ${id}, now() - interval '1 minute', 0, 27, i % 2 = 0, $5::uuid ${each}`,
    [...values, largeBatch],
  );
}

const limits: ClaimLimits = {
  rowsMax: together,
  rowsPerPartnerMax: together,
  bytesMax: 1e9,
  without: [],
  probeLeaseMs: 20_000,
};

const attempt: Attempt = {
  startedAtMs: Date.now(),
  durationMs: 1,
  url: "https://partner.example/ipn",
  address: null,
  httpStatus: 500,
  reason: "status",
  detail: null,
  answer: null,
  keyId: null,
};

function outcome(claimed: Claimed, next: Outcome["next"]): Outcome {
  const { id, claimNo } = claimed;
  return { partnerId: claimed.partnerId, id, claimNo, instance, attemptsMade: claimed.attemptsMade + 1, attempt, next };
}

async function several<Result>(work: () => Promise<Result>): Promise<Result[]> {
  return Promise.all(Array.from({ length: together }, work));
}

/** Some that are certainly there, whatever the backlog. */
async function claimSome(): Promise<readonly Claimed[]> {
  await several(() => completions.report(sampleReport(partnerId, null)));
  return deliveries.claim(instance, limits);
}

/** Before all others: settlements of the large batch, and of batches of which nothing is pending. */
async function claimSettlements(): Promise<void> {
  const settle = async (batchId: string) => {
    const report = sampleReport(partnerId, null, { command: "SETTLEMENT", batchId });
    const { notification } = report;
    const settling = notification && { ...notification, command: "SETTLEMENT" as const, settlesBatch: batchId };
    await completions.report({ ...report, notification: settling });
  };
  await Promise.all(Array.from({ length: together }, (_, nth) => settle(nth % 2 === 0 ? largeBatch : newId())));
  await connections.pool.query("UPDATE pending SET due_at = '-infinity' WHERE settles_batch IS NOT NULL");
  const { rowCount: backlog } = await connections.pool.query("SELECT FROM pending WHERE batch_id = $1 LIMIT 1", [
    largeBatch,
  ]);
  expect(await deliveries.claim(instance, limits)).toHaveLength(backlog === 0 ? together : together / 2);
  await connections.pool.query("DELETE FROM pending WHERE settles_batch IS NOT NULL");
}

async function begin(state = "INIT") {
  const init = sampleInit(partnerId, instance, { tid: `T${newId().slice(-7)}` });
  const begun = await transactions.begin(init);
  if (begun.outcome !== "begun") throw new Error(begun.outcome);
  if (state !== "INIT") {
    const { id } = init;
    await connections.pool.query("UPDATE transactions SET state = $3 WHERE partner_id = $1 AND id = $2", [
      partnerId,
      id,
      state,
    ]);
  }
  return init;
}

/** After one that another currency was declined in: what the batch holds is looked at. */
async function beginBySteps() {
  const { tid } = await begin("ERROR");
  await transactions.begin(sampleInit(partnerId, instance, { tid, currency: "USD" }));
}

/**
 * Every plan of what runs without anything pending is made anew while the tables have no row, as a vacuum at a quiet
 * hour leaves them: claims look every second, and late answers come to what is gone already. Measured:
 * planned so, claims and outcomes walked the whole backlog, 3.2 s for 500 outcomes with 20,000 pending.
 */
async function planWhileNothingIsThere(): Promise<void> {
  const claimed = await claimSome();
  for (const table of ["pending", "parked"]) {
    await connections.pool.query(`DELETE FROM ${table}`);
    // Pages that are there, and no row in them: then even a plan that is made for one run alone believes in no row.
    await connections.pool.query(`VACUUM (ANALYZE, TRUNCATE off) ${table}`);
  }
  const nexts = [{ kind: "accepted" }, { kind: "retry", delayMs: 1 }, { kind: "parked" }] as const;
  for (let run = 0; run < runsToSettle; run += 1) {
    await several(() => deliveries.claim(instance, limits));
    await claimSettlements();
    await several(() => deliveries.releaseDead(together));
    await endpoints.parkOverdue([{ partnerId, lengthMs: 3_600_000 }], together);
    for (const next of nexts) await Promise.all(claimed.map((one) => deliveries.record(outcome(one, next))));
    await several(() => deliveries.giveBack(instance, claimed, 0));
  }
}

function expectBounded(carriedOut: readonly CarriedOut[], named: readonly string[]): void {
  for (const words of named)
    expect(
      carriedOut.some(({ text }) => text.includes(words)),
      words,
    ).toBe(true);
  const tooMuch = carriedOut.filter(
    ({ rowsTouched, blocks, readWhole }) =>
      rowsTouched > touchedMax * together ||
      blocks > touchedMax * together ||
      readWhole.some((table) => /^(pending|transactions|notifications|attempts)/.test(table)),
  );
  expect(tooMuch).toEqual([]);
}

const works: readonly (readonly [string, readonly string[], () => Promise<unknown>])[] = [
  ["a claim", ["WITH RECURSIVE queue"], () => claimSome()],
  ["a claim of settlements", ["e.batch_id = p.settles_batch"], claimSettlements],
  [
    "an accepted delivery",
    ["DELETE FROM pending", "INSERT INTO attempts"],
    async () => {
      const claimed = await claimSome();
      await Promise.all(claimed.map((one) => deliveries.record(outcome(one, { kind: "accepted" }))));
    },
  ],
  [
    "a delivery that failed",
    ["UPDATE pending p SET due_at", "INSERT INTO attempts"],
    async () => {
      const claimed = await claimSome();
      await Promise.all(claimed.map((one) => deliveries.record(outcome(one, { kind: "retry", delayMs: 1e9 }))));
    },
  ],
  [
    "a delivery that is parked",
    ["INSERT INTO parked"],
    async () => {
      const claimed = await claimSome();
      await Promise.all(claimed.map((one) => deliveries.record(outcome(one, { kind: "parked" }))));
    },
  ],
  [
    "what is given back",
    ["origin = coalesce(i.queue, p.origin)"],
    async () => deliveries.giveBack(instance, await claimSome(), 1e9),
  ],
  [
    "what a dead instance held",
    ["gap AS MATERIALIZED"],
    async () => {
      await several(() => completions.report(sampleReport(partnerId, deadInstance)));
      expect(await deliveries.releaseDead(together)).toBe(together);
    },
  ],
  [
    "a command that begins whole, and its reqId",
    ["t.req_id = i.req_id", "INSERT INTO terminals AS t", "traces_after"],
    () => several(() => begin()),
  ],
  [
    "a command that begins by steps, and its reqId",
    ["t.req_id = i.req_id", "FOR UPDATE OF t", "INSERT INTO transactions", "t.state = 'SUCCESS' LIMIT 1"],
    () => several(beginBySteps),
  ],
  [
    "a command that completes, with its notification",
    ["UPDATE transactions t SET state", "INSERT INTO notifications"],
    () =>
      several(async () => {
        const { id } = await begin();
        const notification = sampleNotification(partnerId, id, null);
        const { facts } = notification;
        const nothingElse = { original: null, reversal: null, batch: null };
        await completions.complete({ partnerId, id, instance, state: "SUCCESS", facts, notification, ...nothingElse });
      }),
  ],
  [
    "settlements that are compared with the ledger",
    ["t.compare_at <= now()", "SET compare_at = NULL"],
    async () => {
      const settlement = () => sampleReport(partnerId, null, { command: "SETTLEMENT", batchId: newId() });
      await several(() => completions.report({ ...settlement(), notification: null }));
      await connections.pool.query("UPDATE transactions SET compare_at = now() WHERE compare_at IS NOT NULL");
      const due = await comparisons.takeDue(together, 60_000);
      expect(due).toHaveLength(together);
      await Promise.all(due.map((one) => comparisons.end(one, undefined)));
    },
  ],
  ["the endpoints in trouble", ["FROM endpoints e"], () => endpoints.troubled()],
  [
    "what is overdue, of a partner of which nothing is",
    ["WITH RECURSIVE partner"],
    () => endpoints.parkOverdue([{ partnerId, lengthMs: 3_600_000 }], together),
  ],
];

describe.each(sizes)("with %i pending and statistics taken when there were none", (rows) => {
  beforeAll(async () => {
    const before = sizes[sizes.indexOf(rows) - 1] ?? 0;
    if (rows > before) await fill(before, rows);
    await connections.pool.query("DELETE FROM endpoints");
    if (rows > 0) return;
    // A connection keeps the plan that it made for a statement in the beginning, from its sixth run on.
    for (let run = 0; run < runsToSettle; run += 1) for (const [, , work] of works) await work();
    await planWhileNothingIsThere();
  }, 300_000);

  test.each(works)("%s touches no more rows than it is asked for, and reads no table whole", async (_, named, work) => {
    await work();
    expectBounded(engine, named);
  });

  test("a page of the pull API touches no more rows than it has", async () => {
    const partitions = new Partitions({ pool: connections.pool, clock: { nowMs: () => Date.now() }, historyDays: 90 });
    const store = new PostgresNotifications(connections.pool, partitions);
    await several(() => completions.report(sampleReport(partnerId, null)));
    people.length = 0;
    const { horizon } = await store.history();
    const page = await store.page(partnerId, undefined, horizon, together);
    expect(
      await store.contents(
        partnerId,
        page.map(({ id }) => id),
      ),
    ).toHaveProperty("size", together);
    expectBounded(people, ["ORDER BY n.xid, n.id"]);
  });

  test("a claim passes by what waits for an open endpoint, and takes one probe of it", async () => {
    await connections.pool.query("UPDATE partners SET registered_origin = 'https://dead.example' WHERE id = $1", [
      partnerId,
    ]);
    await connections.pool.query(
      `INSERT INTO endpoints (partner_id, id, kind, target, queue, state, probe_at)
       VALUES ($1, $2, 'origin', 'https://dead.example', 'https://dead.example', 'open', now() + interval '1 hour')`,
      [partnerId, newId()],
    );
    await several(() => completions.report(sampleReport(partnerId, null)));
    expect(await deliveries.claim(instance, limits)).toEqual([]);
    await connections.pool.query("UPDATE endpoints SET probe_at = now()");
    const probes = await Promise.all([deliveries.claim(instance, limits), deliveries.claim(instance, limits)]);
    expect(probes.flat()).toMatchObject([{ isProbe: true }]);
    await endpoints.parkOverdue([{ partnerId, lengthMs: 3_600_000 }], together);
    expectBounded(engine, ["WITH RECURSIVE queue", "WITH RECURSIVE partner"]);
    await connections.pool.query("UPDATE partners SET registered_origin = '' WHERE id = $1", [partnerId]);
  });
});

test("a statement that reads a table whole is noticed", async () => {
  await connections.pool.query("SELECT count(*) FROM pending WHERE bytes = 1");
  expect(() => expectBounded(people, [])).toThrow();
});

/** Tables that do not grow with what partners do. All others can be distributed by partner. */
const exempt = {
  partners: "one row for each partner: its id is the partner's",
  instances: "one row for each running process, forgotten an hour after its end",
  history: "one row",
  terminal_claims: "one small row for each terminal, asked for across partners, so that every node can have them all",
  master_key_check: "one row",
  migrations: "one row for each change of the schema",
};

test("every table that grows has the partner first in its primary key", async () => {
  const { rows } = await connections.pool.query<{ name: string; first: string | null }>(
    `SELECT c.relname AS name, (
       SELECT a.attname FROM pg_index i JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = i.indkey[0]
       WHERE i.indrelid = c.oid AND i.indisprimary) AS first
     FROM pg_class c
     WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition`,
  );
  const found = rows.filter(({ first }) => first !== "partner_id").map(({ name }) => name);
  expect(found.sort()).toEqual(Object.keys(exempt).sort());
  expect(rows.length).toBeGreaterThan(found.length + 5);
});

/** Unique indexes that know nothing of the partner, and why their tables can do without being distributed. */
const exemptIndexes = {
  partner_keys_api_key: "an API key tells whose it is; a partner has a few keys, so that every node can have them all",
};

test("every unique index of a table that grows has the partner in it", async () => {
  const { rows } = await connections.pool.query<{ name: string; partner: boolean }>(
    `SELECT i.indexrelid::regclass::text AS name, EXISTS (
       SELECT FROM pg_attribute a
       WHERE a.attrelid = c.oid AND a.attname = 'partner_id' AND a.attnum = ANY (i.indkey::smallint[])) AS partner
     FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid
     WHERE i.indisunique AND c.relnamespace = 'public'::regnamespace AND NOT c.relispartition
       AND c.relname <> ALL ($1)`,
    [Object.keys(exempt)],
  );
  const found = rows.filter(({ partner }) => !partner).map(({ name }) => name);
  expect(found).toEqual(Object.keys(exemptIndexes));
  expect(rows.length).toBeGreaterThan(found.length + 8);
});

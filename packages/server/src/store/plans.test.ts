import { beforeAll, beforeEach, describe, expect, test } from "vitest";
import { openTestDatabase } from "../../../../test/support/connections.ts";
import { outcomeOf } from "../delivery/delivery.fixture.ts";
import type { Delivery } from "../delivery/delivery.ts";
import type { DeliveryOutcome, QueueRead } from "../delivery/store.ts";
import { newId, shardOf } from "../ids.ts";
import { postgresCircuits } from "./deliveries/circuits.ts";
import { PostgresDeliveries } from "./deliveries/deliveries.ts";
import { postgresShards } from "./deliveries/shards.ts";
import { postgresNotifications } from "./notifications/notifications.ts";
import { type CarriedOut, watchPlans } from "./plans.fixture.ts";
import {
  createHistory,
  insertLease,
  insertPartner,
  sampleInit,
  sampleNotification,
  sampleReport,
} from "./rows.fixture.ts";
import { Partitions } from "./schema/partitions.ts";
import { postgresComparisons } from "./settlements/comparisons.ts";
import { PostgresCompletions } from "./transactions/completions.ts";
import { postgresDueKinds } from "./transactions/due.ts";
import { PostgresTransactions } from "./transactions/transactions.ts";

/** Numbers of pending rows, with a notification and a transaction each. TEST_ROWS=1000000 for the largest. */
const sizes = [0, 1_000, Number(process.env["TEST_ROWS"] ?? 100_000)];
const together = 20;
/** Rows, and pages, that one statement may touch per requested row. Measured: 23 pages at most. */
const touchedMax = 50;
/** Each of the engine's connections runs each statement more than five times. */
const runsToSettle = 40;

const connections = await openTestDatabase({ connectionsMax: 8 });
const { pool } = connections;
const engine = watchPlans(connections.engine);
const people = watchPlans(pool);
await createHistory(pool);
// As just after a service started: every table looks empty, and no vacuum corrects it.
for (const table of ["pending", "transactions", "notifications_now", "attempts_now", "endpoints"]) {
  await pool.query(`ALTER TABLE ${table} SET (autovacuum_enabled = off)`);
}
await pool.query("ANALYZE");
const partnerId = await insertPartner(pool);
const leaseId = await insertLease(pool);
const completions = new PostgresCompletions(connections.homes);
const deliveries = new PostgresDeliveries(connections.homes);
const comparisons = postgresComparisons(connections.homes);
const circuits = postgresCircuits(connections.homes);
const shards = postgresShards(connections.engine, () => connections.connectDirectly());
const transactions = new PostgresTransactions(connections);
const dueKinds = postgresDueKinds(connections.homes);

beforeEach(() => {
  engine.length = 0;
  people.length = 0;
});

/** The batch that contains the whole backlog. */
const largeBatch = newId();

/** Fills the backlog up to `count` rows, all of them due. */
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
     INSERT INTO pending (partner_id, id, chain_id, due_at, bytes, follows, batch_id)
     SELECT $1, ${id}, ${id}, now() - interval '1 minute', 27, i % 2 = 0, $5::uuid ${each}`,
    [...values, largeBatch],
  );
}

const accepted = (delivery: Delivery) => outcomeOf(delivery, "accepted");
const retried = (delivery: Delivery) => outcomeOf(delivery, { delayMs: 1e9 });
const parked = (delivery: Delivery) => outcomeOf(delivery, "parked");

async function several<Result>(work: () => Promise<Result>): Promise<Result[]> {
  return Promise.all(Array.from({ length: together }, work));
}

function readOf(more: Partial<QueueRead> = {}): QueueRead {
  return { partnerId, queue: "", rowsMax: together, bytesMax: 1e9, after: undefined, ...more };
}

/** Some rows that certainly exist, whatever the backlog: the first of the queue. */
async function readSome(): Promise<readonly Delivery[]> {
  await several(() => completions.report(sampleReport(partnerId)));
  const [page] = await deliveries.read([readOf()]);
  return page?.due.flatMap(({ delivery }) => delivery ?? []) ?? [];
}

/** Continues reading from the cursor, as the owner does. */
async function readOn(): Promise<void> {
  const [page] = await deliveries.read([readOf()]);
  const after = page?.due.at(-1);
  await Promise.all([
    deliveries.read([readOf({ after })]),
    deliveries.read([readOf({ queue: "https://none.example" })]),
  ]);
}

/** Follow-ups of a chain, and settlements of the large batch and of batches with nothing pending. */
async function lookForEarlier(): Promise<void> {
  const some = await readSome();
  const settling = (batch: string) => some.map((delivery) => ({ ...delivery, follows: true, settlesBatch: batch }));
  const answers = await deliveries.preceding(settling(newId()));
  expect(answers).toHaveLength(together);
  await deliveries.preceding(settling(largeBatch));
  // They belong to the large batch themselves, and are earlier than everything that waits.
  expect(answers.some((answer) => answer !== undefined)).toBe(true);
}

async function record(next: (delivery: Delivery) => DeliveryOutcome): Promise<void> {
  await Promise.all((await readSome()).map((delivery) => deliveries.record(next(delivery))));
}

/** Outcomes of several kinds in one commit: then an acceptance is not alone. */
async function recordMixed(): Promise<void> {
  const kinds = [accepted, retried, parked];
  const some = await readSome();
  await Promise.all(some.map((delivery, nth) => deliveries.record((kinds[nth % 3] ?? parked)(delivery))));
}

async function postpone(): Promise<void> {
  const some = await readSome();
  await deliveries.postpone(some.map((delivery) => ({ ...delivery, delayMs: 1e9 })));
}

/** Some rows of a scan are parked. */
async function parkOverdue(): Promise<void> {
  const { due } = await deliveries.scan({ ...readOf(), rowsMax: 500 });
  const some = due.slice(0, together).flatMap(({ delivery }) => delivery ?? []);
  expect(await deliveries.park(some, "timeout")).toBe(together);
}

async function begin(state = "INIT") {
  const init = sampleInit(partnerId, leaseId, { tid: `T${newId().slice(-7)}` });
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

/** After a declined one with another currency: then the batch's content is checked. */
async function beginInDollars() {
  const { tid } = await begin("ERROR");
  await transactions.begin(sampleInit(partnerId, leaseId, { tid, currency: "USD" }));
}

/**
 * Statements that also run with nothing pending are planned again while the tables have no row, as a vacuum at a quiet
 * hour causes: the owner polls every second, and late answers refer to deleted rows. Measured: planned like that,
 * outcomes scanned the whole backlog, 3.2 s for 500 with 20,000 pending.
 */
async function planWhileNothingIsThere(): Promise<void> {
  const gone = await readSome();
  for (const table of ["pending", "parked"]) {
    await connections.pool.query(`DELETE FROM ${table}`);
    // Keeps the pages, but without rows: then even a plan for a single run expects no row.
    await connections.pool.query(`VACUUM (ANALYZE, TRUNCATE off) ${table}`);
  }
  await planFor(gone);
}

/** Runs the statements until each connection keeps its plan of each. */
async function planFor(gone: readonly Delivery[]): Promise<void> {
  for (let run = 0; run < runsToSettle; run += 1) {
    await several(() => deliveries.read([readOf()]));
    await several(() => deliveries.heads([shardOf(partnerId)]));
    await several(() => deliveries.preceding(gone.map((delivery) => ({ ...delivery, follows: true }))));
    await several(() => deliveries.park(gone, "timeout"));
    for (const next of [accepted, retried, parked]) {
      await Promise.all(gone.map((delivery) => deliveries.record(next(delivery))));
    }
    await Promise.all(gone.map((delivery, nth) => deliveries.record((nth % 2 === 0 ? accepted : parked)(delivery))));
    await several(() => deliveries.postpone(gone.map((delivery) => ({ ...delivery, delayMs: 1 }))));
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
  ["a page of a queue", ["i.rows_max + 1"], readSome],
  ["a page from a cursor", ["i.rows_max + 1"], readOn],
  ["a sweep of the heads", ["WITH RECURSIVE head"], () => deliveries.heads([shardOf(partnerId)])],
  ["what must leave before", ["e.batch_id = i.settles_batch"], lookForEarlier],
  ["an accepted delivery", ["WITH attempt AS"], () => record(accepted)],
  ["a delivery that failed", ["attempts_made = i.attempts_made + 1", "INSERT INTO attempts"], () => record(retried)],
  ["a delivery that is parked", ["INSERT INTO parked"], () => record(parked)],
  ["outcomes of every kind", ["DELETE FROM pending p USING unnest", "DELETE FROM parked p"], recordMixed],
  ["what is postponed", ["delay_ms * interval"], postpone],
  ["the circuits of a shard", ["FROM endpoints e"], () => circuits.load([shardOf(partnerId)])],
  ["circuits changed by hand", ["e.control_no > 0\n  ORDER"], () => circuits.loadChangedByHand([shardOf(partnerId)])],
  ["the kinds of due work", ["t.notify_at <= now()"], () => dueKinds.due()],
  ["the map of the shards", ["FROM shards s WHERE s.lease_id = l.id"], () => shards.map(leaseId)],
  [
    "a command that begins, and its reqId",
    ["t.req_id = i.req_id", "FROM terminals t WHERE", "INSERT INTO transactions", "SELECT i.batch_id, coalesce"],
    () => several(beginInDollars),
  ],
  [
    "a command that completes, with its notification",
    ["UPDATE transactions t SET state", "INSERT INTO notifications"],
    () =>
      several(async () => {
        const { id } = await begin();
        const notification = sampleNotification(partnerId, id);
        const { facts } = notification;
        const nothingElse = { original: null, reversal: null, batch: null };
        await completions.complete({ partnerId, id, leaseId, state: "SUCCESS", facts, notification, ...nothingElse });
      }),
  ],
  [
    "settlements that are compared with the ledger",
    ["r.compare_at <= now()", "SET compare_at = NULL"],
    async () => {
      const settlement = () => sampleReport(partnerId, { command: "SETTLEMENT", batchId: newId() });
      await several(() => completions.report({ ...settlement(), notification: null }));
      await connections.pool.query("UPDATE transactions SET compare_at = now() WHERE compare_at IS NOT NULL");
      const due = await comparisons.claimDue(together, 60_000);
      expect(due).toHaveLength(together);
      await Promise.all(due.map((one) => comparisons.end(one, undefined)));
    },
  ],
];

describe.each(sizes)("with %i pending and statistics taken when there were none", (rows) => {
  beforeAll(async () => {
    const before = sizes[sizes.indexOf(rows) - 1] ?? 0;
    if (rows > before) await fill(before, rows);
    await connections.pool.query("DELETE FROM endpoints");
    if (rows > 0) return;
    // From its sixth run on, a connection keeps the plan that it made for a statement.
    for (let run = 0; run < runsToSettle; run += 1) for (const [, , work] of works) await work();
    await planWhileNothingIsThere();
  });

  test.each(works)("%s touches no more rows than it is asked for, and reads no table whole", async (_, named, work) => {
    await work();
    expectBounded(engine, named);
  });

  test("a page of the pull API touches no more rows than it has", async () => {
    const partitions = new Partitions({
      homes: connections.homes,
      clock: { nowMs: () => Date.now() },
      historyDays: 90,
      proofDays: 400,
      contents: { isAsCommitted: () => true },
    });
    const store = postgresNotifications(connections, partitions);
    await several(() => completions.report(sampleReport(partnerId)));
    people.length = 0;
    const { horizon } = await store.history(partnerId);
    const page = await store.page(partnerId, undefined, horizon, together);
    expect(
      await store.contents(
        partnerId,
        page.map(({ id }) => id),
      ),
    ).toHaveProperty("size", together);
    expectBounded(people, ["ORDER BY n.xid, n.id"]);
  });

  test("a scan of a queue that is not read touches those that it reads, and those that it parks", async () => {
    await parkOverdue();
    const [look] = engine.filter(({ text }) => text.includes("i.rows_max + 1"));
    // Each of 500 rows once in the index and in the table, and its content.
    expect(look?.blocks).toBeLessThan(500 * 9);
    expect(look?.rowsTouched).toBeLessThan(500 * 2 + touchedMax * together);
    expect(look?.readWhole).toEqual([]);
  });
});

/**
 * PostgreSQL plans anew whenever the table's definition is invalidated. It then takes the real height of each index, but
 * the number of rows from the last vacuum. Seen: with a queue's index one level higher than the key's, the key was
 * cheaper, and each page, and each sweep of the heads, read and sorted the whole backlog.
 */
test("no statement is planned along the key because the index of the queues is one level higher", async () => {
  let filled = 2_000_000;
  const fillMore = async (count: number) => {
    await fill(filled, filled + count);
    filled += count;
  };
  await fillMore(1_000);
  const gone = await readSome();
  await connections.pool.query("DELETE FROM pending");
  await connections.pool.query("VACUUM (ANALYZE, TRUNCATE off) pending");
  await connections.pool.query("REINDEX TABLE pending");
  const isHigher = async (): Promise<boolean> => {
    const text = `SELECT pg_relation_size('pending_due') > pg_relation_size('pending_pkey') AS "isHigher"`;
    const { rows } = await connections.pool.query<{ isHigher: boolean }>(text);
    return rows[0]?.isHigher === true;
  };
  while (!(await isHigher())) await fillMore(10);
  await connections.pool.query("ALTER TABLE pending SET (autovacuum_enabled = off)");
  await planFor(gone);
  expect(await isHigher()).toBe(true);
  await fillMore(10_000);
  engine.length = 0;
  for (const [, , work] of works) await work();
  expectBounded(engine, []);
});

test("a statement that reads a table whole is noticed", async () => {
  await connections.pool.query("SELECT count(*) FROM pending WHERE bytes = 1");
  expect(() => expectBounded(people, [])).toThrow();
});

/** Tables that do not grow with partners' activity. All others can be distributed by partner. */
const exempt = {
  partners: "one row for each partner: its id is the partner's",
  leases: "one row for each running process or delivery worker",
  shards: "256 rows",
  history: "one row",
  terminal_claims: "one small row for each terminal, asked for across partners, so that every node can have them all",
  two_admin_rule: "one row",
  row_seals: "a row for each change of an operator or an API key by a person",
  sealed_values: "a few rows",
  sealing: "one row",
  operators: "a few people",
  audit: "one chain of hashes over everything that people do",
  audit_start: "one row",
  migrations: "one row for each change of the schema",
  alert_quiet: "one row for each kind of alert",
  acquirers: "one row for each, 100 at most",
  acquirer_sessions: "one row for each acquirer",
  acquirer_sign_offs: "one row for each host of an acquirer, at most",
  clearing_acquirers: "one row for each acquirer whose files are matched",
  clearing_files: "a few rows a day for each acquirer",
  clearing_chunks: "the lines of a file, until they are matched",
  feed_position: "one row",
  restores: "one row for each restore",
  proposals: "what one admin proposed within the last minutes",
  ended_sessions: "sign-outs of the last half day, 60 a minute for each token at most",
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

/** Unique indexes without the partner, and why their tables need not be distributed. */
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

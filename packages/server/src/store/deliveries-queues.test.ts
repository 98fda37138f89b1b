import { Client } from "pg";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from "vitest";
import { createDatabase, type TestDatabase } from "../../../../test/support/database.ts";
import type { Claimed, ClaimLimits } from "../delivery/store.ts";
import { newId, type PartnerId } from "../ids.ts";
import type { Instance } from "../instance.ts";
import { PostgresCompletions } from "./completions.ts";
import { type Database, openDatabase } from "./database.ts";
import { claim } from "./deliveries-claim.ts";
import { Queues, type QueuesOptions } from "./deliveries-queues.ts";
import { releaseDead } from "./deliveries-statements.ts";
import { type CarriedOut, watchPlans } from "./plans.fixture.ts";
import { createHistory, insertInstance, insertPartner, sampleReport } from "./rows.fixture.ts";

/** Rows of `pending` that are gone and cannot be cleared away, each on another page than its neighbour in the index. */
const gone = 20_000;
const limits: ClaimLimits = { rowsMax: 5, rowsPerPartnerMax: 5, bytesMax: 1e9, without: [], probeLeaseMs: 1_000 };
const behindAll = "ffffffff-ffff-ffff-ffff-ffffffffffff";
/** Pages for each row that is claimed; measured: 19. */
const pagesMax = 50;

let database: TestDatabase;
let connections: Database;
let completions: PostgresCompletions;
let carriedOut: CarriedOut[];
let instance: Instance;
let partnerId: PartnerId;

beforeAll(async () => {
  database = await createDatabase();
  connections = openDatabase(database.url, { connectionsMax: 8, onIdleError: () => {} });
  carriedOut = watchPlans(connections.engine);
  await createHistory(connections.pool);
  completions = new PostgresCompletions(connections.engine, { onDoubtfulReport: () => {} });
});

beforeEach(async () => {
  await connections.pool.query("TRUNCATE pending, instances");
  partnerId = await insertPartner(connections.pool);
  instance = await insertInstance(connections.pool);
});

afterAll(async () => {
  await connections.close();
  await database.drop();
});

async function report(count: number, of = partnerId): Promise<void> {
  await Promise.all(Array.from({ length: count }, () => completions.report(sampleReport(of, null))));
}

async function claimBy(queues: Queues, by: Partial<ClaimLimits> = {}): Promise<readonly Claimed[]> {
  const how = { limits: { ...limits, ...by }, servedLast: behindAll, queues };
  return (await claim(connections.engine, instance, how)).claimed;
}

/** What one piece of work did, by PostgreSQL's own count. */
async function watch<Result>(work: () => Promise<Result>): Promise<{ result: Result; ran: CarriedOut[] }> {
  carriedOut.length = 0;
  const result = await work();
  return { result, ran: [...carriedOut] };
}

function pagesOf(ran: readonly CarriedOut[]): number {
  return ran.reduce((pages, { blocks }) => pages + blocks, 0);
}

function walks(ran: readonly CarriedOut[]): boolean {
  return ran.some(({ text }) => text.includes("json_agg(found)"));
}

describe("beside a transaction that stays open", () => {
  let holder: Client;

  beforeEach(async () => {
    await insertGone(null);
    await insertGone(instance);
    holder = new Client({ connectionString: database.url });
    await holder.connect();
    await holder.query("BEGIN ISOLATION LEVEL REPEATABLE READ");
    await holder.query("SELECT pg_current_xact_id()");
    await connections.pool.query("DELETE FROM pending");
  });
  afterEach(() => holder.end());

  async function insertGone(lease: Instance | null): Promise<void> {
    await connections.pool.query(
      `INSERT INTO pending (partner_id, id, chain_id, due_at, claim_no, bytes, instance_id, epoch)
       SELECT $1, gen_random_uuid(), gen_random_uuid(), now() - interval '1 minute' + i * 7919 % $2 * interval '1 ms',
         0, 27, $3, $4
       FROM generate_series(1, $2::integer) AS i`,
      [partnerId, gone, lease?.id ?? null, lease?.epoch ?? null],
    );
  }

  test("a claim passes by what is gone once, and then no more", async () => {
    await report(20);
    const queues = new Queues(connections.engine, { suspectMs: 0, cheapWalkMs: 0, nowMs: () => 0 });
    const first = await watch(() => claimBy(queues));
    expect(first.result).toHaveLength(5);
    expect(pagesOf(first.ran)).toBeGreaterThan(gone / 2);
    const second = await watch(() => claimBy(queues));
    expect(walks(second.ran)).toBe(true);
    for (let run = 0; run < 2; run += 1) {
      const { result, ran } = await watch(() => claimBy(queues));
      expect(result).toHaveLength(5);
      expect(walks(ran)).toBe(false);
      expect(pagesOf(ran)).toBeLessThan(5 * pagesMax);
    }
    const empty = await watch(() => claimBy(queues));
    expect(empty.result).toEqual([]);
    expect(pagesOf(empty.ran)).toBeLessThan(pagesMax);
  });

  test("looking for rows of instances that are gone passes by those of the living", async () => {
    const dead = await insertInstance(connections.pool, -1_000);
    const look = () => connections.engine.query({ ...releaseDead, values: [100] });
    const { ran } = await watch(look);
    expect(pagesOf(ran)).toBeLessThan(pagesMax);
    await completions.report(sampleReport(partnerId, dead));
    await completions.report(sampleReport(partnerId, instance));
    expect((await look()).rowCount).toBe(1);
  });
});

describe("what is known", () => {
  let nowMs = 0;
  const dear: QueuesOptions = { suspectMs: 0, cheapWalkMs: 0, nowMs: () => nowMs };
  /** In it a walk takes no time, so that it is the last one for long. */
  const muchLaterMs = 3_600_000;

  /** Knows one queue with nothing left, and where it ended. */
  async function knowing(): Promise<Queues> {
    const queues = new Queues(connections.engine, dear);
    await report(2);
    await claimBy(queues, { rowsMax: 1 });
    expect(await queues.known()).toMatchObject([{ partner_id: partnerId, origin: "" }]);
    expect(await claimBy(queues)).toHaveLength(1);
    return queues;
  }

  test("hides nothing that is due now, were its transaction begun before the claim", async () => {
    const queues = await knowing();
    const writer = await connections.pool.connect();
    await writer.query("BEGIN");
    const id = newId();
    await writer.query(
      `INSERT INTO notifications (partner_id, id, chain_id, command, content) VALUES ($1, $2, $2, 'SALE', '{}')`,
      [partnerId, id],
    );
    await report(1);
    expect(await claimBy(queues)).toHaveLength(1);
    await writer.query(
      "INSERT INTO pending (partner_id, id, chain_id, due_at, claim_no, bytes) VALUES ($1, $2, $2, now(), 0, 2)",
      [partnerId, id],
    );
    await writer.query("COMMIT");
    writer.release();
    expect(await claimBy(queues)).toMatchObject([{ id }]);
  });

  test("hides a row below its queue's floor until the next walk, and no longer", async () => {
    const queues = await knowing();
    await report(1);
    await connections.pool.query("UPDATE pending SET due_at = now() - interval '1 hour' WHERE instance_id IS NULL");
    const before = await watch(() => claimBy(queues));
    expect(before.result).toEqual([]);
    expect(walks(before.ran)).toBe(false);
    nowMs += muchLaterMs;
    const after = await watch(() => claimBy(queues));
    expect(walks(after.ran)).toBe(true);
    expect(after.result).toHaveLength(1);
  });

  test("hides a queue that is new until the next walk, and no longer", async () => {
    const queues = await knowing();
    const other = await insertPartner(connections.pool);
    await report(1, other);
    expect(await claimBy(queues)).toEqual([]);
    nowMs += muchLaterMs;
    expect(await claimBy(queues)).toMatchObject([{ partnerId: other }]);
  });

  test("is served on while a walk does not come to its end", async () => {
    const queues = await knowing();
    nowMs += muchLaterMs;
    await report(1);
    const query = vi.spyOn(connections.engine, "query").mockRejectedValueOnce(new Error("statement timeout"));
    expect(await claimBy(queues)).toHaveLength(1);
    expect(query).toHaveBeenCalledTimes(2);
    query.mockRestore();
  });

  test("is forgotten once a walk is cheap again: each claim walks by itself", async () => {
    const queues = new Queues(connections.engine, { ...dear, cheapWalkMs: 3 });
    await claimBy(queues);
    const query = vi.spyOn(connections.engine, "query");
    const walked = (took_ms: number) => query.mockImplementationOnce(async () => ({ rows: [{ queues: [], took_ms }] }));
    walked(3);
    expect(await queues.known()).toEqual([]);
    nowMs += 30;
    walked(2.9);
    expect(await queues.known()).toBeUndefined();
    query.mockRestore();
    await report(1);
    expect(await claimBy(queues)).toHaveLength(1);
  });

  test("is not asked for while claims are fast", async () => {
    const queues = new Queues(connections.engine, { suspectMs: Number.POSITIVE_INFINITY, cheapWalkMs: 0 });
    for (let run = 0; run < 3; run += 1) {
      const { ran } = await watch(() => claimBy(queues));
      expect(walks(ran)).toBe(false);
      expect(await queues.known()).toBeUndefined();
    }
  });
});

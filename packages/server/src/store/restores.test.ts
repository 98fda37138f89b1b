import { expect, onTestFinished, test } from "vitest";
import { connectionsTo } from "../../../../test/support/connections.ts";
import { createDatabase, type TestDatabase, withAdmin } from "../../../../test/support/database.ts";
import { type LeaseId, lowestId, newId, nilId, type PartnerId } from "../ids.ts";
import { PostgresRestores } from "./restores.ts";
import { createHistory, insertLease, insertPartner, sampleInit } from "./rows.fixture.ts";
import { PostgresTransactions } from "./transactions/transactions.ts";

async function openTestDatabase() {
  const made = await createDatabase();
  onTestFinished(() => made.drop());
  return made;
}

function connect({ url }: Pick<TestDatabase, "url">) {
  const database = connectionsTo(url, 6);
  onTestFinished(() => database.close());
  return { database, restores: new PostgresRestores(database), transactions: new PostgresTransactions(database) };
}

type Connected = ReturnType<typeof connect>;

/** As `paybell restore` does by the server's own configuration: connections that are opened from now on are told. */
async function markRestored({ url }: Pick<TestDatabase, "url">, name: string): Promise<void> {
  await withAdmin(url, async (client) => {
    const { rows } = await client.query<{ statement: string }>(
      "SELECT format('ALTER DATABASE %I SET paybell.restored = %L', current_database(), $1::text) AS statement",
      [name],
    );
    await client.query(rows[0]?.statement ?? "");
  });
}

async function insertPending({ database }: Connected, partnerId: PartnerId, attemptsMade: number): Promise<string> {
  const id = newId<"notification">();
  await database.pool.query(
    `INSERT INTO pending (partner_id, id, chain_id, due_at, attempts_made, bytes)
     VALUES ($1, $2, $2, now() + interval '1 hour', $3, 100)`,
    [partnerId, id, attemptsMade],
  );
  return id;
}

async function countOf({ database }: Connected, table: string): Promise<number> {
  const { rows } = await database.pool.query<{ count: number }>(`SELECT count(*) AS count FROM ${table}`);
  return rows[0]?.count ?? -1;
}

test("pending notifications of a restored database are parked by the first start, once", async () => {
  const made = await openTestDatabase();
  const before = connect(made);
  const partnerId = await insertPartner(before.database.pool);
  await insertLease(before.database.pool);
  const [never, tried] = [await insertPending(before, partnerId, 0), await insertPending(before, partnerId, 3)];
  expect(await before.restores.holdMarked(Date.now())).toBeUndefined();
  expect(await countOf(before, "pending")).toBe(2);

  await markRestored(made, "first");
  const after = connect(made);
  const restore = await after.restores.holdMarked(Date.now());
  expect(restore).toMatchObject({ name: "first", held: 2, releasedAtMs: null });
  expect(restore?.endsAtMs).toBeLessThanOrEqual(Date.now());
  expect(await countOf(after, "pending")).toBe(0);
  const { rows } = await after.database.pool.query("SELECT id, reason, attempts_made FROM parked ORDER BY id");
  expect(rows).toEqual([
    { id: never, reason: "restored", attempts_made: 0 },
    { id: tried, reason: "restored", attempts_made: 3 },
  ]);
  expect(await after.restores.shares()).toEqual([expect.objectContaining({ partnerId, count: 2, attempted: 1 })]);

  await insertPending(after, partnerId, 0);
  expect(await after.restores.holdMarked(Date.now())).toBeUndefined();
  expect(await countOf(after, "pending")).toBe(1);
  await markRestored(made, "second");
  expect(await connect(made).restores.holdMarked(Date.now())).toMatchObject({ name: "second", held: 1 });
});

test("a large backlog is parked by several statements, each within its timeout", async () => {
  const made = await openTestDatabase();
  const { database, restores } = connect(made);
  const partnerId = await insertPartner(database.pool);
  await database.pool.query(
    `INSERT INTO pending (partner_id, id, chain_id, due_at, attempts_made, bytes)
     SELECT $1, id, id, now(), 0, 100 FROM (SELECT gen_random_uuid() AS id FROM generate_series(1, 5001)) AS made`,
    [partnerId],
  );
  await database.pool.query(`
    CREATE FUNCTION refuse_many() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
      IF (SELECT count(*) FROM gone) > 5000 THEN RAISE 'too many'; END IF;
      RETURN NULL;
    END $$;
    CREATE TRIGGER few AFTER DELETE ON pending REFERENCING OLD TABLE AS gone
      FOR EACH STATEMENT EXECUTE FUNCTION refuse_many()`);
  expect(await restores.hold("large", Date.now())).toMatchObject({ held: 5_001 });
});

test("two starts at once hold once, and neither parks what the other accepts", async () => {
  const made = await openTestDatabase();
  await markRestored(made, "once");
  const [one, other] = [connect(made), connect(made)];
  const held = await Promise.all([one, other].map(({ restores }) => restores.holdMarked(Date.now())));
  expect(held.filter((restore) => restore !== undefined)).toHaveLength(1);
});

test("an instance that was running when the database was restored under it gets no lease before a start", async () => {
  const made = await openTestDatabase();
  const before = connect(made);
  const id = await insertLease(before.database.pool);
  await markRestored(made, "beneath");
  const running = connect(made);
  const beat = () => running.database.pool.query("UPDATE leases SET beat = beat + 1 WHERE id = $1", [id]);
  await expect(beat()).rejects.toThrow("the database is that of the restore beneath");
  await expect(insertLease(running.database.pool)).rejects.toThrow("no instance was started on it yet");
  await running.restores.holdMarked(Date.now());
  await beat();
  await insertLease(running.database.pool);
});

test("a command that was in flight ends only after the release, one of a later lease as ever", async () => {
  const made = await openTestDatabase();
  const before = connect(made);
  await createHistory(before.database.pool);
  const partnerId = await insertPartner(before.database.pool);
  const init = sampleInit(partnerId, await insertLease(before.database.pool));
  await before.transactions.begin(init);
  const takes = { traceNo: true, invoiceNo: false, batch: false, settlement: "SETTLEMENT" } as const;
  await before.transactions.begin(sampleInit(partnerId, init.leaseId, { command: "SETTLEMENT", takes }));
  await before.database.pool.query("DELETE FROM leases");
  // Of restores before this one, one was released, and one was not: its data were restored again.
  await before.database.pool.query(
    `INSERT INTO restores (name, held, leases_below, released_at)
     VALUES ('earlier', 0, $1, now()), ('given up', 0, $2, NULL)`,
    [nilId, lowestId(Date.now() + 1)],
  );

  await markRestored(made, "in-flight");
  const { restores, transactions, database } = connect(made);
  const restoredMs = Date.now();
  await restores.holdMarked(restoredMs);
  const held = await restores.commands("in-flight", 10);
  expect(held).toEqual([expect.objectContaining({ partnerId, id: init.id, command: "SALE", reqId: init.reqId })]);
  const later = sampleInit(partnerId, newId<"lease">(restoredMs + 1));
  await transactions.begin(later);
  const taker: LeaseId = await insertLease(database.pool);
  expect((await transactions.takeOver(taker, 10)).map(({ id }) => id)).toEqual([later.id]);
  expect(await transactions.takeOver(taker, 10)).toEqual([]);

  await restores.release("in-flight");
  expect((await transactions.takeOver(taker, 10)).map(({ id }) => id)).toEqual([init.id]);
  expect((await restores.last())?.releasedAtMs).toBeGreaterThanOrEqual(restoredMs - 1_000);
});

test("numbers that the lost part of the ledger used are not used again", async () => {
  const made = await openTestDatabase();
  const before = connect(made);
  await before.database.pool.query(
    `INSERT INTO terminals (partner_id, tid, mid, trace_no, invoice_no)
     VALUES ($1, 'T1', 'M', 7, 5), ($1, 'T2', 'M', 999500, 0), ($1, 'T3', 'M', 0, 0)`,
    [newId()],
  );
  await markRestored(made, "numbers");
  const after = connect(made);
  await after.restores.holdMarked(Date.now());
  const { rows } = await after.database.pool.query("SELECT tid, trace_no, invoice_no FROM terminals ORDER BY tid");
  expect(rows).toEqual([
    { tid: "T1", trace_no: 1_007, invoice_no: 1_005 },
    { tid: "T2", trace_no: 501, invoice_no: 0 },
    { tid: "T3", trace_no: 0, invoice_no: 0 },
  ]);
});

test("a database that another program restored is held by hand, and never under a running instance", async () => {
  const made = await openTestDatabase();
  const connected = connect(made);
  const partnerId = await insertPartner(connected.database.pool);
  await insertPending(connected, partnerId, 1);
  await insertLease(connected.database.pool);
  await expect(connected.restores.hold("by hand", Date.now())).rejects.toThrow(
    "Instances run on this database, on test",
  );
  expect(await countOf(connected, "pending")).toBe(1);
  await connected.database.pool.query("UPDATE leases SET beaten_at = now() - interval '1 minute'");
  expect(await connected.restores.hold("by hand", Date.now())).toMatchObject({ name: "by hand", held: 1 });
});

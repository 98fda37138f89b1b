import { afterAll, expect, test, vi } from "vitest";
import { insertNotification, openBench, registerPartner } from "../notifications/notifications.fixture.ts";
import { postgresPartnerArchive } from "./archive.ts";

const bench = await openBench();
afterAll(() => bench.close());

test("a deletion takes along what was redelivered since it began: nobody could end it later", async () => {
  const [partner, other] = [await registerPartner(bench.pool), await registerPartner(bench.pool)];
  for (const { id } of [partner, other]) await insertNotification(bench.pool, id, { state: "pending" });
  await bench.pool.query("UPDATE partners SET state = 'disabled' WHERE id = $1", [partner.id]);
  await postgresPartnerArchive(bench).remove(partner.id);
  const { rows } = await bench.pool.query("SELECT partner_id FROM pending");
  expect(rows).toEqual([{ partner_id: other.id }]);
});

test("an archive has each row once, over pages", async () => {
  const { id } = await registerPartner(bench.pool);
  await bench.pool.query(
    "INSERT INTO terminals (partner_id, tid, mid) SELECT $1, 'T' || nth, 'M' FROM generate_series(1, 1001) AS nth",
    [id],
  );
  const lines: string[] = [];
  for await (const some of postgresPartnerArchive(bench).lines(id)) lines.push(...some);
  expect([lines.length, new Set(lines).size]).toEqual([1_002, 1_002]);
});

test("a proposal that nobody confirmed goes with its partner, expired or not", async () => {
  const { id } = await registerPartner(bench.pool);
  await bench.pool.query(
    `INSERT INTO proposals (id, action, partner_id, input, proposed_by, token_id, expires_at)
     SELECT gen_random_uuid(), 'rotateKey', $1, '{}', 'Ada', 't', now() + hours * interval '1 hour'
     FROM unnest(ARRAY[-1, 1]) AS hours`,
    [id],
  );
  await bench.pool.query("UPDATE partners SET state = 'disabled' WHERE id = $1", [id]);
  await postgresPartnerArchive(bench).remove(id);
  for (const [table, key] of Object.entries({ partners: "id", proposals: "partner_id" })) {
    expect((await bench.pool.query(`SELECT FROM ${table} WHERE ${key} = $1`, [id])).rowCount).toBe(0);
  }
});

/** A transaction of their own deletes the keys, claims and proposals; a Settlement holds a deletion up. */
const elsewhere = ["partner_keys", "proposals", "settlements", "terminal_claims"];

test("a deletion leaves nothing of the partner in any table that has its id", async () => {
  const { id } = await registerPartner(bench.pool);
  await bench.pool.query("UPDATE partners SET state = 'disabled' WHERE id = $1", [id]);
  const { rows } = await bench.pool.query<{ name: string }>(
    `SELECT c.relname AS name FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
     WHERE a.attname = 'partner_id' AND c.relkind IN ('r', 'p') AND NOT c.relispartition
       AND c.relnamespace = current_schema()::regnamespace AND NOT EXISTS (
         SELECT FROM pg_constraint f
         WHERE f.conrelid = c.oid AND f.confrelid = 'partners'::regclass AND f.confdeltype = 'c')`,
  );
  const query = vi.spyOn(bench.pool, "query");
  await postgresPartnerArchive(bench).remove(id);
  const deleted = query.mock.calls.flatMap(([asked]) => /DELETE FROM (\w+)/.exec(JSON.stringify(asked))?.[1] ?? []);
  query.mockRestore();
  expect([...deleted, ...elsewhere].sort()).toEqual(rows.map(({ name }) => name).sort());
});

test("a partner that is enabled again during its deletion stays, with all that it gets from then on", async () => {
  const { id } = await registerPartner(bench.pool);
  const archive = postgresPartnerArchive(bench);
  await insertNotification(bench.pool, id, { state: "pending" });
  await bench.pool.query("UPDATE partners SET state = 'active' WHERE id = $1", [id]);
  await expect(archive.remove(id)).rejects.toMatchObject({ code: "partner_in_use" });
  for (const table of ["pending", "notifications"]) {
    const { rowCount } = await bench.pool.query(`SELECT FROM ${table} WHERE partner_id = $1`, [id]);
    expect(rowCount).toBe(1);
  }
});

test("a deletion waits until every instance knows of the last change, also of a partner that was paused before", async () => {
  const { id } = await registerPartner(bench.pool);
  // Later than any test lasts.
  await bench.pool.query(
    `UPDATE partners SET state = 'disabled', stopped_at = now() - interval '1 hour', updated_at = now() + interval '1 hour'
     WHERE id = $1`,
    [id],
  );
  expect(await postgresPartnerArchive(bench).obstacles(id)).toEqual(["it was changed less than 10 seconds ago"]);
});

const transaction = (more: string, values: string) => `
  INSERT INTO transactions (partner_id, id, origin, command, req_id, chain_id, facts, ${more})
  VALUES ($1, gen_random_uuid(), 'switch', 'SALE', 'r', gen_random_uuid(), '{"fields":{}}', ${values})`;
const reversal = (state: string) => `
  INSERT INTO reversals (partner_id, transaction_id, tid, state) VALUES ($1, gen_random_uuid(), 'T', '${state}')`;

test.each([
  ["1 Reversals are not done", reversal("PENDING")],
  // Its card may be charged.
  ["1 Reversals are not done", reversal("PARKED")],
  ["1 commands are in flight", transaction("state", "'INIT'")],
  ["1 reports wait", transaction("state, notify_at", "'SUCCESS', now()")],
  [
    "1 settlements are under way",
    `INSERT INTO settlements (partner_id, id, kind, tid, batch_id)
     VALUES ($1, gen_random_uuid(), 'SETTLEMENT', 'T', gen_random_uuid())`,
  ],
  // The acquirer waits for an answer to a chargeback.
  [
    "1 exceptions of clearing are open",
    `INSERT INTO clearing_entries (partner_id, id, kind, state, acquirer, file_id, differences)
     SELECT $1, gen_random_uuid(), 'chargeback', state, '', gen_random_uuid(), '[]'
     FROM unnest(ARRAY['open', 'resolved']) AS state`,
  ],
])("a deletion is held up: %s", async (why, insert) => {
  const [{ id }, other] = [await registerPartner(bench.pool), await registerPartner(bench.pool)];
  const { obstacles } = postgresPartnerArchive(bench);
  await bench.pool.query("UPDATE partners SET updated_at = now() - interval '1 hour'");
  expect(await obstacles(id)).toEqual([]);
  await bench.pool.query(insert, [id]);
  expect([await obstacles(id), await obstacles(other.id)]).toEqual([[why], []]);
});

test.each([
  ["something counts", "NULL", ["1 batches are open"]],
  ["all was reversed", "'done'", []],
])("a deletion waits for what counts in an open batch: %s (%s), %j", async (_, reversed, why) => {
  const { id } = await registerPartner(bench.pool);
  await bench.pool.query("UPDATE partners SET updated_at = now() - interval '1 hour'");
  await bench.pool.query("INSERT INTO terminals (partner_id, tid, mid) VALUES ($1, 'T', 'M')", [id]);
  const batchId = "(SELECT batch_id FROM terminals WHERE partner_id = $1)";
  await bench.pool.query(transaction("state, reversal_state, batch_id", `'SUCCESS', ${reversed}, ${batchId}`), [id]);
  expect(await postgresPartnerArchive(bench).obstacles(id)).toEqual(why);
});

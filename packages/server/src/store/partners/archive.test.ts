import { afterAll, expect, test } from "vitest";
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

test.each(["PENDING", "PARKED"])(
  "a Reversal that is %s holds a deletion up: its card may be charged",
  async (state) => {
    const { id } = await registerPartner(bench.pool);
    const { obstacles } = postgresPartnerArchive(bench);
    await bench.pool.query("UPDATE partners SET updated_at = now() - interval '1 hour' WHERE id = $1", [id]);
    expect(await obstacles(id)).toEqual([]);
    const insert =
      "INSERT INTO reversals (partner_id, transaction_id, tid, state) VALUES ($1, gen_random_uuid(), 'T', $2)";
    await bench.pool.query(insert, [id, state]);
    expect(await obstacles(id)).toEqual(["1 Reversals are not done"]);
  },
);

import { afterAll, expect, test } from "vitest";
import { insertNotification, openBench, registerPartner } from "../notifications/notifications.fixture.ts";
import { PostgresPartnerArchive } from "./archive.ts";

const bench = await openBench();
afterAll(() => bench.close());

test("a deletion takes along what was redelivered since it began: nobody could end it later", async () => {
  const [partner, other] = [await registerPartner(bench.pool), await registerPartner(bench.pool)];
  for (const { id } of [partner, other]) await insertNotification(bench.pool, id, { state: "pending" });
  await new PostgresPartnerArchive(bench).remove(partner.id);
  const { rows } = await bench.pool.query("SELECT partner_id FROM pending");
  expect(rows).toEqual([{ partner_id: other.id }]);
});

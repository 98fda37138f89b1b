import { afterAll, beforeAll, expect, test } from "vitest";
import { reportedSale } from "../support/commands.ts";
import { createDatabase, type TestDatabase, withAdmin } from "../support/database.ts";
import { eventually, startTestService, type TestService } from "../support/service.ts";

let database: TestDatabase;
let service: TestService;
beforeAll(async () => {
  database = await createDatabase();
  service = await startTestService({ database });
});
afterAll(async () => {
  await service.stop();
  await database.drop();
});

function sql(text: string): Promise<unknown> {
  return withAdmin(database.url, (client) => client.query(text));
}

test("what a claim took whose answer was lost is sent all the same, by the instance that lives on", async () => {
  const partner = await service.register();
  const setState = (state: string) => service.operator("POST", `/operator/v1/partners/${partner.id}/${state}`);
  await setState("pause");
  const ids = await service.report([1, 2, 3].map(() => reportedSale(partner.id)));
  // The claim was committed, and nobody was told.
  await sql("UPDATE pending SET instance_id = i.id, epoch = i.epoch, claim_no = claim_no + 1 FROM instances i");
  await sql("ALTER TABLE pending RENAME TO away");
  await eventually("a claim to fail", async () =>
    service.logged().includes("could not claim what is due") ? true : undefined,
  );
  await sql("ALTER TABLE away RENAME TO pending");
  await setState("resume");
  const all = await partner.server.next(3);
  expect(all.map(({ received }) => received?.ipn.id).sort()).toEqual([...ids].sort());
});

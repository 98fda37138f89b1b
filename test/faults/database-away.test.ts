import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { FaultyLink } from "../../faults/link.ts";
import { seeded } from "../../faults/random.ts";
import { reportedSale, sale } from "../support/commands.ts";
import { createDatabase, type TestDatabase } from "../support/database.ts";
import { holdAnswers } from "../support/held-answers.ts";
import { eventually, startTestService, type TestPartner, type WholeService } from "../support/service.ts";

let database: TestDatabase;
let link: FaultyLink;
let service: WholeService;
let partner: TestPartner;
let sold: string;
const externalId = "away-1";

beforeAll(async () => {
  database = await createDatabase();
  const at = new URL(database.serviceUrl.replace("@/", "@local/"));
  const { searchParams } = at;
  const path = `${searchParams.get("host")}/.s.PGSQL.${searchParams.get("port") ?? "5432"}`;
  link = new FaultyLink({ path }, seeded(1));
  await link.listen("127.0.0.1");
  const serviceUrl = `postgres://${at.username}:${at.password}@127.0.0.1:${link.port}${at.pathname}`;
  service = await startTestService({ database: { ...database, serviceUrl } });
  partner = await service.register();
  sold = String((await partner.run(sale())).body["id"]);
  await service.report([reportedSale(partner.id, { externalId })]);
});
afterAll(async () => {
  await service.stop();
  await link.close();
  await database.drop();
});

const command = (json: unknown) => partner.call("POST", "/v1/commands", { json });
const voidOfSale = () =>
  command({ command: "VOID", reqId: "5c3f0c9e-52a4-4b0e-9f0e-1d5a8f2f7b0a", transactionId: sold });
const voidReport = () => {
  const completions = [
    reportedSale(partner.id, { externalId: "away-2", command: "VOID", originalExternalId: externalId }),
  ];
  return service.operator("POST", "/operator/v1/completions", { completions });
};

test("a command whose INIT is durable is answered 202 during a database outage, and continues by itself", async () => {
  const [slow, settlement] = [randomUUID(), randomUUID()];
  const terminal = { tid: "T0000009", mid: "M00000000000001" };
  const begun = (reqId: string) =>
    eventually(`${reqId} to be begun`, async () => {
      const { status } = await partner.call("GET", `/v1/transactions?reqId=${reqId}`);
      return status === 200 ? true : undefined;
    });
  const held = holdAnswers(service.acquirer);
  const sold = partner.run(sale({ ...terminal, reqId: slow }));
  await begun(slow);
  // It waits for the Sale, and looks again and again whether it has ended.
  const settled = partner.run({ command: "SETTLEMENT", reqId: settlement, ...terminal });
  await begun(settlement);
  await link.begin("cut");
  expect(await settled).toMatchObject({ status: 202, body: { status: "INIT" } });
  held.go();
  await link.end();
  expect(await sold).toMatchObject({ status: 200 });
});

describe("while the database is away", () => {
  beforeAll(() => link.begin("cut"));
  afterAll(() => link.end());

  test.each([
    ["a command that refers to another one", voidOfSale],
    ["an invalid command, which may have begun under other rules", () => command(sale({ amount: "0" }))],
    ["a report that refers to another one", voidReport],
    ["a question for a transaction", () => partner.call("GET", `/v1/transactions/${sold}`)],
    ["a search", () => service.operator("GET", "/operator/v1/notifications?q=away-1")],
  ])("%s is refused as unavailable, with a time to come again", async (_, call) => {
    const { status, body, headers } = await call();
    expect({ status, code: body["code"] }).toEqual({ status: 503, code: "unavailable" });
    expect(Number(headers.get("retry-after"))).toBeGreaterThan(0);
  });
});

test("and is taken when it comes again", async () => {
  await expect.poll(async () => (await voidOfSale()).body["status"]).toBe("SUCCESS");
  await expect.poll(async () => (await voidReport()).status).toBe(200);
});

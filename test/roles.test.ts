import { randomBytes } from "node:crypto";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { profile } from "../packages/server/src/acquirer/iso8583/example-profile.fixture.ts";
import { systemClock } from "../packages/server/src/clock.ts";
import { reportedSale, sale } from "./support/commands.ts";
import { createDatabase, type TestDatabase } from "./support/database.ts";
import { freePort } from "./support/ports.ts";
import { eventually, startTestService, type TestPartner, type WholeService } from "./support/service.ts";

const masterKey = randomBytes(32);
let database: TestDatabase;
let api: WholeService;
let delivery: WholeService;
let partner: TestPartner;

beforeAll(async () => {
  database = await createDatabase();
  const shared = { database, masterKey };
  api = await startTestService({ ...shared, role: "api" });
  delivery = await startTestService({ ...shared, role: "delivery" });
  partner = await api.register();
});

afterAll(async () => {
  await api.stop();
  await delivery.stop();
  await database.drop();
});

test("a process that only delivers sends what one that only takes requests has accepted", async () => {
  const [reported] = await api.report([reportedSale(partner.id)]);
  const { body } = await partner.run(sale());
  const sent = await partner.server.next(2);
  expect(sent.map(({ received }) => received?.ipn.id).sort()).toEqual([reported, String(body["id"])].sort());
});

test("a process that only delivers opens no link to the acquirer: of a host with one session it would be that", async () => {
  const hosts = [{ host: "127.0.0.1", port: await freePort() }];
  const acquirer = { profile, hosts, tls: undefined, clock: systemClock };
  const service = await startTestService({ database, masterKey, role: "delivery", acquirer });
  onTestFinished(async () => void (await service.stop()));
  const { body } = await service.operator("GET", "/readyz");
  expect(body["checks"]).toMatchObject({ acquirer: { detail: "iso8583" } });
});

test.each([
  ["/v1/self", 404],
  ["/operator/v1/partners", 404],
  ["/console/", 404],
  ["/healthz", 200],
  ["/readyz", 200],
  ["/metrics", 200],
])("a process that only delivers answers %s with %i", async (path, status) => {
  await eventually(`${status}`, async () => {
    const answer = await delivery.operator("GET", path);
    return answer.status === status || undefined;
  });
});

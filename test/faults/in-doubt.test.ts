import { randomBytes } from "node:crypto";
import { afterAll, beforeAll, expect, test } from "vitest";
import { sale } from "../support/commands.ts";
import { createDatabase, type TestDatabase } from "../support/database.ts";
import { type Instance, spawnInstance } from "../support/instance.ts";
import { ipnOf } from "../support/receiver.ts";
import { callHttp, startTestService, type TestPartner, type WholeService } from "../support/service.ts";

let database: TestDatabase;
let survivor: WholeService;
let victim: Instance;
let partner: TestPartner;
beforeAll(async () => {
  database = await createDatabase();
  const masterKey = randomBytes(32);
  survivor = await startTestService({ database, masterKey });
  partner = await survivor.register();
  victim = await spawnInstance({ databaseUrl: database.url, masterKey, callsLoopback: true });
});
afterAll(async () => {
  victim.signal("SIGKILL");
  await victim.exited;
  await survivor.stop();
  await database.drop();
});

test("a command whose instance is killed while the acquirer has it ends as ERROR 96, with its IPN", async () => {
  const command = sale({ card: { token: "tok_slow_60000" } });
  const call = { key: partner.secrets.apiKey, json: command, headers: { prefer: "respond-async" } };
  const begun = await callHttp(victim.baseUrl, "POST", "/v1/commands", call);
  expect(begun).toMatchObject({ status: 202, body: { status: "INIT" } });
  victim.signal("SIGKILL");
  await victim.exited;

  const [delivery] = await partner.server.next(1);
  const failure = { status: "ERROR", isoResponseCode: "96", approveCode: "", refId: "" };
  expect(ipnOf(delivery)).toMatchObject({ ...failure, id: begun.body["id"], reqId: command["reqId"] });
  const repeated = await partner.run(command);
  expect(repeated).toMatchObject({ status: 200, body: { ...failure, id: begun.body["id"] } });
  expect(survivor.logged()).toMatch(/in doubt.*ERROR 96|ERROR 96.*in doubt/);
});

test("a command of a living instance is never taken over", async () => {
  const command = sale({ card: { token: "tok_slow_300" } });
  const { status, body } = await partner.run(command);
  expect(status).toBe(200);
  expect(body).toMatchObject({ status: "SUCCESS", isoResponseCode: "00" });
});

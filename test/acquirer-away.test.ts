import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { FakeHost } from "../packages/server/src/acquirer/iso8583/link/fake-host.fixture.ts";
import { sale } from "./support/commands.ts";
import { createDatabase, queryHomes, type TestDatabase } from "./support/database.ts";
import { type Instance, partnerHost, spawnInstance } from "./support/instance.ts";
import { callHttp, eventually, type TestPartner } from "./support/service.ts";

let database: TestDatabase;
let host: FakeHost;
let instances: readonly Instance[];
let partner: TestPartner;
beforeAll(async () => {
  [database, host] = await Promise.all([createDatabase(), FakeHost.listen()]);
  const env = {
    PAYBELL_ACQUIRER: "iso8583",
    PAYBELL_ACQUIRER_PROFILE: join(import.meta.dirname, "../docs/operator/acquirer-profile.json"),
    PAYBELL_ACQUIRER_HOSTS: `127.0.0.1:${host.port}`,
    PAYBELL_ACQUIRER_TLS: "off",
  };
  const { host: address, callsLoopback } = partnerHost();
  const masterKey = randomBytes(32);
  const start = () => spawnInstance({ databaseUrl: database.url, masterKey, callsLoopback, env });
  instances = await Promise.all([start(), start()]);
  const [first] = instances as [Instance];
  partner = await first.register({}, { host: address });
});
afterAll(async () => {
  for (const instance of instances) instance.signal("SIGTERM");
  await Promise.all(instances.map(({ exited }) => exited));
  await partner.server.close();
  await database.drop();
});

const run = (nth: number, json: unknown = sale()) =>
  callHttp(instances[nth]?.baseUrl ?? "", "POST", "/v1/commands", { key: partner.secrets.apiKey, json });

/** Resolves once every instance answers a command so. */
async function everyInstanceAnswers(status: number, code?: string): Promise<void> {
  for (const nth of instances.keys()) {
    await eventually(`${status} ${code ?? ""} from instance ${nth}`, async () => {
      const answer = await run(nth);
      return answer.status === status && answer.body["code"] === code ? true : undefined;
    });
  }
}

const count = async () => {
  const rows = await queryHomes(database, "SELECT count(*)::integer AS count FROM transactions");
  return rows[0]?.["count"];
};

async function kindsOf(kind: string): Promise<unknown[]> {
  const { body } = await (instances[0] as Instance).operator("GET", `/operator/v1/events?state=${kind}`);
  return body["items"] as unknown[];
}

const ofHost = (mti: string, fields: readonly (readonly [number, string])[]) =>
  host.send({ mti, fields: new Map([[7, "1122061112"], [11, "000777"], ...fields]) });

test("while its acquirer is away a command is refused before anything is written, on every instance", async () => {
  await everyInstanceAnswers(200);
  const known = sale();
  const first = await run(0, known);
  const [signedOn] = host.sockets;
  for (const socket of host.sockets) if (socket !== signedOn) host.leaves(socket);
  ofHost("0800", [[70, "002"]]);
  await everyInstanceAnswers(503, "acquirer_signed_off");
  const before = await count();
  const refused = await run(1);
  expect(refused).toMatchObject({ status: 503, body: { code: "acquirer_signed_off" } });
  expect(refused.headers.get("retry-after")).toBe("5");
  expect(await count()).toBe(before);
  // A command that was accepted before is answered, and may be undone.
  const again = { status: 200, body: { id: first.body["id"], status: "SUCCESS" } };
  expect(await run(1, known)).toMatchObject(again);
  const reversal = { command: "REVERSAL", reqId: crypto.randomUUID(), transactionId: first.body["id"] };
  const { status } = await callHttp(instances[1]?.baseUrl ?? "", "POST", "/v1/commands", {
    key: partner.secrets.apiKey,
    json: reversal,
    headers: { prefer: "respond-async" },
  });
  expect(status).toBe(202);
  expect(host.heard.filter(({ mti }) => mti === "0400")).toEqual([]);
  ofHost("0800", [[70, "001"]]);
  await everyInstanceAnswers(200);
  await host.hears("0400");
  ofHost("0800", [[70, "201"]]);
  ofHost("0420", [
    [4, "000000010000"],
    [41, "T0000001"],
  ]);
  await host.hears("0430");
  for (const kind of ["acquirer_signed_off", "acquirer_signed_on", "acquirer_cutover", "acquirer_advice"]) {
    await eventually(kind, async () => ((await kindsOf(kind)).length === 1 ? true : undefined));
  }
  expect(await kindsOf("acquirer_advice")).toMatchObject([
    { detail: { acquirer: "default", mti: "0420", amount: "000000010000", tid: "T0000001" } },
  ]);
  await host.close();
  await everyInstanceAnswers(503, "acquirer_unreachable");
});

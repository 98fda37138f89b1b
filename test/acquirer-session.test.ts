import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { FakeHost } from "../packages/server/src/acquirer/iso8583/link/fake-host.fixture.ts";
import { sale } from "./support/commands.ts";
import { createDatabase, type TestDatabase } from "./support/database.ts";
import { type Instance, partnerHost, spawnInstance } from "./support/instance.ts";
import { callHttp, eventually, type TestPartner } from "./support/service.ts";

const example = readFileSync(join(import.meta.dirname, "../docs/operator/acquirer-profile.json"), "utf8");

let database: TestDatabase;
let host: FakeHost;
let folder: string;
let instances: readonly Instance[];
let partner: TestPartner;
beforeAll(async () => {
  [database, host, folder] = await Promise.all([
    createDatabase(),
    FakeHost.listen(),
    mkdtemp(join(tmpdir(), "paybell-session-")),
  ]);
  const profile = JSON.parse(example) as { network: object };
  const file = join(folder, "host.json");
  await writeFile(file, JSON.stringify({ ...profile, network: { ...profile.network, sessions: "one" } }));
  const env = {
    PAYBELL_ACQUIRER: "iso8583",
    PAYBELL_ACQUIRER_PROFILE: file,
    PAYBELL_ACQUIRER_HOSTS: `127.0.0.1:${host.port}`,
    PAYBELL_ACQUIRER_TLS: "off",
  };
  const { host: address, callsLoopback } = partnerHost();
  const masterKey = randomBytes(32);
  const start = () => spawnInstance({ databaseUrl: database.url, masterKey, callsLoopback, env });
  const first = await start();
  await stateOf(first, /: signed on at/);
  instances = [first, await start()];
  partner = await first.register({}, { host: address });
});
afterAll(async () => {
  const [, second] = instances;
  second?.signal("SIGTERM");
  await second?.exited;
  await partner.server.close();
  await host.close();
  await rm(folder, { recursive: true });
  await database.drop();
});

/** Resolves once /readyz says this of the acquirer. */
function stateOf(instance: Instance, what: RegExp): Promise<string> {
  return eventually(`${what} in /readyz`, async () => {
    const { body } = await instance.operator("GET", "/readyz");
    const { acquirer } = body["checks"] as Record<string, { detail: string }>;
    return what.test(acquirer?.detail ?? "") ? acquirer?.detail : undefined;
  });
}

const run = (nth: number) =>
  callHttp(instances[nth]?.baseUrl ?? "", "POST", "/v1/commands", { key: partner.secrets.apiKey, json: sale() });

test("both instances run commands over one session, and after a kill -9 of its holder the other connects", async () => {
  const [first, second] = instances;
  if (first === undefined || second === undefined) throw new Error("two were started");
  await stateOf(second, /another instance has the one session that the host allows: signed on at/);
  expect((await run(0)).body).toMatchObject({ status: "SUCCESS" });
  expect((await run(1)).body).toMatchObject({ status: "SUCCESS" });
  expect(host.sockets.size).toBe(1);
  first.signal("SIGKILL");
  await first.exited;
  await stateOf(second, /^iso8583, example-host: signed on at/);
  expect((await run(1)).body).toMatchObject({ status: "SUCCESS" });
  expect(host.sockets.size).toBe(1);
  expect(host.heard.filter(({ mti }) => mti === "0200")).toHaveLength(3);
});

import { randomBytes } from "node:crypto";
import { afterAll, beforeAll, expect, test } from "vitest";
import { SimulatedAcquirer } from "../../packages/server/src/acquirer/simulator/simulator.ts";
import { type Service, startService } from "../../packages/server/src/app.ts";
import { readConfig } from "../../packages/server/src/config/config.ts";
import { makeAuthority } from "../../packages/server/src/delivery/transport/transport.fixture.ts";
import { MasterKey } from "../../packages/server/src/partners/master-key.ts";
import { createLog } from "../../packages/server/src/telemetry/log.ts";
import { reportedSale, sale } from "../support/commands.ts";
import { createDatabase, type TestDatabase } from "../support/database.ts";
import { callbackCa, type PartnerServer, startPartnerServer } from "../support/receiver.ts";
import { eventually, operatorToken, type ServiceClient, serviceClient, type TestPartner } from "../support/service.ts";
import { type Authorities, faults, flood } from "./misbehaving.ts";

/** A machine that pauses for five seconds changes no result. */
const attemptTimeoutMs = 10_000;
/** Only the first attempt is of interest. */
const retry = [3_600];

interface AttemptView {
  readonly attemptNo: number;
  readonly reason: string | null;
  readonly detail: string | null;
  readonly httpStatus: number | null;
}

let authorities: Authorities;
let database: TestDatabase;
let service: Service;
let client: ServiceClient;
/** Its receiver behaves. */
let good: TestPartner;
/** It is never called: the others' callbacks go to the misbehaving receiver. */
let unused: PartnerServer;
const lines: string[] = [];
beforeAll(async () => {
  authorities = { trusted: await makeAuthority("Faulty partners"), foreign: await makeAuthority("Strangers") };
  database = await createDatabase();
  const env = {
    PAYBELL_OPERATOR_TOKEN: operatorToken,
    PAYBELL_ATTEMPT_TIMEOUT_MS: String(attemptTimeoutMs),
    PAYBELL_CONNECT_TIMEOUT_MS: "8000",
  };
  service = await startService({
    config: { ...readConfig(env), port: 0 },
    databaseUrl: database.url,
    masterKey: new MasterKey(randomBytes(32)),
    acquirer: new SimulatedAcquirer(),
    acquirerName: "simulator",
    log: createLog("debug", { write: (line) => void lines.push(line) }),
    sandbox: true,
    hosts: ["127.0.0.1"],
    callbackCas: [await callbackCa(), authorities.trusted.cert],
  });
  const [baseUrl = ""] = await service.listen();
  client = serviceClient(baseUrl);
  good = await client.register();
  unused = await startPartnerServer();
});
afterAll(async () => {
  await service.stop();
  await Promise.all([good.server.close(), unused.close()]);
  await database.drop();
});

function registerAt(callBackUrl: string): Promise<TestPartner> {
  return client.register({ callBackUrl, retry }, { server: unused });
}

/** As the operator sees them: the partner does not see looked-up addresses. */
async function attemptsOf(notificationId: string): Promise<readonly AttemptView[]> {
  const { body } = await client.operator("GET", `/operator/v1/notifications/${notificationId}`);
  return body["attempts"] as AttemptView[];
}

/** At the well-behaved one. */
function arrived(...transactionIds: unknown[]): Promise<unknown> {
  return good.server.until((all) => {
    const seen = new Set<unknown>(all.map(({ received }) => received?.ipn.id));
    return transactionIds.every((id) => seen.has(id));
  });
}

test("the failure of a receiver is recorded, with its reason in words", async () => {
  const bad = await registerAt("https://nowhere.invalid/ipn");
  const { id } = await bad.notify(sale());
  const attempts = await eventually("the attempt to be recorded", async () => {
    const made = await attemptsOf(id);
    return made.length > 0 ? made : undefined;
  });
  const detail = expect.stringContaining("nowhere.invalid");
  expect(attempts).toMatchObject([{ attemptNo: 1, reason: "dns", httpStatus: null, detail }]);
});

test("receivers that fail in every way at once, each with more than its maxInFlight, affect no other partner, and end", async () => {
  const urls = await Promise.all(faults.map((fault) => fault.serve(authorities)));
  const partners: TestPartner[] = [];
  for (const url of urls) partners.push(await registerAt(url));
  flood.bytes = 0;
  await Promise.all(partners.map(({ id }) => client.report(Array.from({ length: 40 }, () => reportedSale(id)))));
  const sales = await Promise.all(Array.from({ length: 50 }, () => good.run(sale())));
  await arrived(...sales.map(({ body }) => body["id"]));

  // Bounded: hanging attempts are given up, and every slot is free again.
  await eventually("every place to be free", async () => (service.inFlight() === 0 ? true : undefined));
  // 80 answers of 100 MB are 8 GB; measured: each was cut after 0.2 MB.
  expect(flood.bytes).toBeLessThan(80 * 8 * 1_024 * 1_024);
  expect(lines.filter((line) => line.includes('"level":"error"') || line.includes('"level":50'))).toEqual([]);
});

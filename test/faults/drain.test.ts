import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { connect } from "node:net";
import { afterAll, beforeAll, expect, test } from "vitest";
import { reportedSale } from "../support/commands.ts";
import { createDatabase, type TestDatabase } from "../support/database.ts";
import { type Instance, partnerHost, spawnInstance } from "../support/instance.ts";
import { startTestService, type TestPartner } from "../support/service.ts";

const batches = 20;
const batchSize = 100;

let database: TestDatabase;
let first: Instance;
let partner: TestPartner;
const masterKey = randomBytes(32);
const { host, callsLoopback } = partnerHost();
beforeAll(async () => {
  database = await createDatabase();
  first = await spawnInstance({ databaseUrl: database.url, masterKey, callsLoopback });
  partner = await first.register({}, { host });
});
afterAll(async () => {
  await partner.server.close();
  await database.drop();
});

test.concurrent("SIGTERM under load ends the process with 0, and loses and repeats nothing", async () => {
  const accepted: string[] = [];
  // A request without an answer may have been accepted: only answers count here.
  const reporting = (async () => {
    for (let batch = 0; batch < batches; batch += 1) {
      const ids = await first.report(Array.from({ length: batchSize }, () => reportedSale(partner.id)));
      accepted.push(...ids);
    }
  })().catch(() => undefined);
  await partner.server.until((all) => all.length >= 3 * batchSize);
  first.signal("SIGTERM");
  expect(await first.exited, first.output()).toBe(0);
  await reporting;
  expect(accepted.length).toBeGreaterThan(0);

  const second = await spawnInstance({ databaseUrl: database.url, masterKey, callsLoopback });
  const deliveredIds = () => partner.server.deliveries.map(({ received }) => received?.ipn.id ?? "refused");
  await partner.server.until(() => {
    const delivered = new Set(deliveredIds());
    return accepted.every((id) => delivered.has(id));
  });
  second.signal("SIGTERM");
  expect(await second.exited, second.output()).toBe(0);
  const delivered = deliveredIds();
  expect(delivered).toHaveLength(new Set(delivered).size);
});

test.concurrent("a caller that never finishes its request does not keep the service from stopping", async () => {
  const service = await startTestService();
  const caller = connect(Number(new URL(service.baseUrl).port), "127.0.0.1");
  const cut = new Promise((resolve) => caller.on("error", () => undefined).once("close", resolve));
  const head = ["POST /healthz HTTP/1.1", "host: 127.0.0.1", "expect: 100-continue", "content-length: 100"];
  caller.write(`${head.join("\r\n")}\r\n\r\n`);
  await once(caller, "data");
  await Promise.all([service.stop(), cut]);
});

import { afterAll, beforeAll, expect, test } from "vitest";
import { createDatabase, type TestDatabase } from "../../../../test/support/database.ts";
import type { ClaimLimits } from "../delivery/store.ts";
import { newId } from "../ids.ts";
import { PostgresCompletions } from "./completions.ts";
import { type Database, openDatabase } from "./database.ts";
import { PostgresDeliveries } from "./deliveries.ts";
import { PostgresEndpoints } from "./endpoints.ts";
import { createHistory, insertInstance, insertPartner, sampleNotification, sampleReport } from "./rows.fixture.ts";

const queue = "https://partner.example";
const limits: ClaimLimits = { rowsMax: 100, rowsPerPartnerMax: 10, bytesMax: 1e9, without: [], probeLeaseMs: 20_000 };

let database: TestDatabase;
let connections: Database;
beforeAll(async () => {
  database = await createDatabase();
  connections = openDatabase(database.url, { connectionsMax: 4, onIdleError: () => {} });
  await createHistory(connections.pool);
});
afterAll(async () => {
  await connections.close();
  await database.drop();
});

test("a probe that was released is not counted, and comes again after its delay", async () => {
  const { pool, engine } = connections;
  const completions = new PostgresCompletions(engine, { onDoubtfulReport: () => {} });
  const deliveries = new PostgresDeliveries(engine);
  const endpoints = new PostgresEndpoints(connections);
  const instance = await insertInstance(pool);
  const partnerId = await insertPartner(pool);
  const { id, ...rest } = sampleReport(partnerId, null);
  const callBackUrl = `${queue}/ipn`;
  const notification = { ...sampleNotification(partnerId, id, null), callBackUrl };
  await completions.report({ ...rest, id, callBackUrl, notification });
  await pool.query(
    `INSERT INTO endpoints (partner_id, id, kind, target, queue, state, failures, probes, probe_at)
     VALUES ($1, $2, 'origin', $3, $3, 'open', 7, 2, now())`,
    [partnerId, newId<"endpoint">(), queue],
  );
  const standing = async () => (await endpoints.search({ partnerId, state: "open", limit: 1 }))[0];

  const taken = await deliveries.claim(instance, limits);
  expect(taken).toMatchObject([{ isProbe: true }]);
  expect(await standing()).toMatchObject({ probes: 3 });
  await deliveries.giveBack(instance, taken, 0);
  const beforeMs = Date.now();
  await endpoints.releaseProbe({ partnerId, queue }, 5_000);
  const released = await standing();
  expect(released).toMatchObject({ probes: 2 });
  expect((released?.probeAt?.getTime() ?? 0) - beforeMs).toBeGreaterThan(4_000);
  expect((released?.probeAt?.getTime() ?? 0) - beforeMs).toBeLessThan(10_000);
  expect(await deliveries.claim(instance, limits)).toEqual([]);
  await endpoints.releaseProbe({ partnerId, queue }, 0);
  expect(await deliveries.claim(instance, limits)).toMatchObject([{ isProbe: true }]);
});

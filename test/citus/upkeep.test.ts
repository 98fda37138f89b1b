import { randomBytes } from "node:crypto";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Database, openDatabase } from "../../packages/server/src/store/database/database.ts";
import { findHomes } from "../../packages/server/src/store/database/homes.ts";
import { postgresFigures } from "../../packages/server/src/store/deliveries/figures.ts";
import { Partitions } from "../../packages/server/src/store/schema/partitions.ts";
import { sweepCards } from "../../packages/server/src/store/transactions/cards.ts";
import { LedgerRetention } from "../../packages/server/src/store/transactions/ledger-retention.ts";
import { reportedSale, sale } from "../support/commands.ts";
import { createDatabase, queryHomes, type TestDatabase } from "../support/database.ts";
import { spawnPaybell } from "../support/instance.ts";
import { countRows } from "../support/rows.ts";
import { startTestService, type TestPartner, type WholeService } from "../support/service.ts";

const dayMs = 86_400_000;
const [masterKey, newMasterKey] = [randomBytes(32), randomBytes(32)];

let database: TestDatabase;
let service: WholeService;
let partner: TestPartner;
let homes: Database;
beforeAll(async () => {
  database = await createDatabase();
  service = await startTestService({ database, masterKey });
  partner = await service.register();
  homes = openDatabase(database.url, {
    connectionsMax: 4,
    onIdleError: () => undefined,
    homes: await findHomes(database.url),
  });
}, 240_000);
afterAll(async () => {
  await homes.close();
  await service.stop();
  await database.drop();
}, 120_000);

test("expired rows are dropped in every home, and pending notifications keep their content", async () => {
  await partner.run(sale());
  await partner.server.next(1);
  await service.operator("POST", `/operator/v1/partners/${partner.id}/pause`);
  await service.report([reportedSale(partner.id), reportedSale(partner.id)]);
  const clock = { nowMs: () => Date.now() + 120 * dayMs };
  await queryHomes(database, "UPDATE pending SET schedule_start = now() - interval '119 days'");
  await queryHomes(database, "UPDATE cards SET look_at = now()");
  await queryHomes(database, "UPDATE endpoints SET updated_at = now() - interval '119 days'");

  await postgresFigures(homes.homes).dropOld(clock.nowMs());
  await sweepCards(homes.homes, 30);
  const done = await new Partitions({
    homes: homes.homes,
    clock,
    historyDays: 90,
    proofDays: 400,
    contents: { isAsCommitted: () => true },
  }).maintain();
  expect(done).toMatchObject({ waiting: [], troubles: [] });
  expect(done.dropped).toBeGreaterThan(0);
  const parked = await queryHomes(database, "SELECT reason, notification ->> 'content' AS content FROM parked");
  expect(parked).toMatchObject([
    { reason: "retention", content: expect.stringContaining("{") },
    { reason: "retention", content: expect.stringContaining("{") },
  ]);

  await queryHomes(database, "UPDATE transactions SET created_at = now() - interval '400 days', completed_at = NULL");
  const dropped: string[] = [];
  const retention = new LedgerRetention({
    homes: homes.homes,
    clock: { nowMs: () => Date.now() + 1_000 * dayMs },
    ledgerDays: 400,
    onDropped: (table, rows) => dropped.push(`${table} ${rows}`),
  });
  await retention.run();
  // The two that are parked stay, and so does the Sale, whose batch is open.
  const left = await countRows(database, ["pending", "parked", "transactions"]);
  expect(left).toEqual({ pending: 0, parked: 2, transactions: 3 });
  await queryHomes(database, "DELETE FROM parked");
  await retention.run();
  expect(dropped).toContain("transactions 2");
}, 120_000);

test("the master key is rotated on all nodes, and the audit records it", async () => {
  const rotate = spawnPaybell(["master-key", "rotate"], {
    DATABASE_URL: database.url,
    PAYBELL_MASTER_KEY: newMasterKey.toString("base64"),
    PAYBELL_MASTER_KEY_OTHERS: masterKey.toString("base64"),
  });
  expect(await rotate.exited, rotate.output()).toBe(0);
  const { body } = await service.operator("GET", "/operator/v1/audit?limit=1");
  expect(body["items"]).toMatchObject([{ action: "rotateMasterKey" }]);
});

import { randomBytes } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { startCitusNode } from "../../faults/citus.ts";
import { openUp, type PostgresServer } from "../../faults/postgres.ts";
import { schemasOfHomes } from "../../packages/server/src/store/database/homes.ts";
import { reportedSale } from "../support/commands.ts";
import { createDatabase, type TestDatabase, templateDatabase, withAdmin } from "../support/database.ts";
import {
  callHttp,
  eventually,
  notificationIdOf,
  startTestService,
  type TestPartner,
  type WholeService,
} from "../support/service.ts";

const masterKey = randomBytes(32);

let folder: string;
let node: PostgresServer;
let database: TestDatabase;
const services: WholeService[] = [];
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "paybell-citus-"));
  await openUp(folder);
  [database, node] = await Promise.all([createDatabase(), startCitusNode(folder, "worker-3")]);
}, 240_000);
afterAll(async () => {
  for (const service of services) await service.stop();
  await database.drop();
  await node.stop();
  await rm(folder, { recursive: true, force: true });
}, 120_000);

async function start(): Promise<WholeService> {
  const service = await startTestService({ database, masterKey });
  services.push(service);
  return service;
}

const asOperator = (sql: string, values: readonly unknown[] = []) =>
  withAdmin(database.url, async (client) => (await client.query<Record<string, unknown>>(sql, [...values])).rows);

/** The schema that has its history. */
async function homeOf(partner: TestPartner): Promise<string> {
  const schemas = await withAdmin(database.url, schemasOfHomes);
  for (const schema of schemas) {
    const rows = await asOperator(`SELECT FROM ${schema}.notifications WHERE partner_id = $1 LIMIT 1`, [partner.id]);
    if (rows.length > 0) return schema;
  }
  throw new Error("no home has the partner");
}

async function pulled(service: WholeService, partner: TestPartner, after = "") {
  const path = `/v1/notifications?limit=100${after === "" ? "" : `&after=${after}`}`;
  const { status, body } = await callHttp(service.baseUrl, "GET", path, { key: partner.secrets.apiKey });
  const items = (body["items"] ?? []) as { id: string }[];
  return { status, body, ids: items.map(({ id }) => id) };
}

test("a home moves to a node that was added, with what is pending, and is pulled from its beginning", {
  timeout: 240_000,
}, async () => {
  const before = await start();
  const partner = await before.register();
  const report = (service: WholeService, count: number) =>
    service.report(Array.from({ length: count }, () => reportedSale(partner.id)));
  const told = await report(before, 3);
  await partner.server.next(3);
  const { body } = await eventually("all to be listed", async () => {
    const page = await pulled(before, partner);
    return page.ids.length === told.length ? page : undefined;
  });
  await before.operator("POST", `/operator/v1/partners/${partner.id}/pause`);
  const waiting = await report(before, 2);
  await before.service.stop();

  const home = await homeOf(partner);
  const { pathname } = new URL(database.url);
  await node.query(`CREATE DATABASE ${pathname.slice(1)}`);
  await node.query("CREATE EXTENSION citus", [], pathname.slice(1));
  // The database is a clone, and Citus looks for its original.
  await node.query(`CREATE DATABASE ${templateDatabase}`);
  await asOperator("SELECT citus_add_node('127.0.0.1', $1)", [node.port]);
  await asOperator("SELECT replicate_reference_tables('block_writes')");
  await asOperator(`SELECT citus_schema_move('${home}', '127.0.0.1', $1, 'block_writes')`, [node.port]);
  await asOperator(`UPDATE ${home}.notifications SET xid = '3'`);

  const after = await start();
  await after.operator("POST", `/operator/v1/partners/${partner.id}/resume`);
  await partner.server.next(5);
  const later = await report(after, 1);
  const came = await partner.server.next(6);
  expect(new Set(came.map(({ received }) => received?.ipn.id))).toEqual(new Set([...told, ...waiting, ...later]));
  expect(await pulled(after, partner, String(body["next"]))).toMatchObject({
    status: 409,
    body: { code: "cursor_from_another_history" },
  });
  const all = await eventually("the last one to be listed", async () => {
    const page = await pulled(after, partner);
    return page.ids.length === 6 ? page : undefined;
  });
  const ids = came.map(notificationIdOf);
  expect(new Set(all.ids)).toEqual(new Set(ids));
  expect(all.ids.at(-1)).toBe(ids.at(-1));
});

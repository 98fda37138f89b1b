import { once } from "node:events";
import { type AddressInfo, createConnection, createServer, type Socket } from "node:net";
import { hostname } from "node:os";
import { join } from "node:path";
import { Client } from "pg";
import { expect, onTestFinished, test } from "vitest";
import { connectionsTo } from "../../../../test/support/connections.ts";
import { createDatabase } from "../../../../test/support/database.ts";
import { systemClock, systemTimers } from "../clock.ts";
import { newId } from "../ids.ts";
import { Lease } from "../leases/lease.ts";
import { PostgresListener } from "./database/client.ts";
import { postgresLeases } from "./leases.ts";

async function openLeases() {
  const { url, drop } = await createDatabase();
  onTestFinished(drop);
  const database = connectionsTo(url, 6);
  onTestFinished(() => database.close());
  const connection = await database.connectDirectly();
  onTestFinished(() => connection.end());
  return { database, leases: postgresLeases(() => Promise.resolve(connection)) };
}

test("a lease says who holds it, is inserted once, and beats until it is removed", async () => {
  const { database, leases } = await openLeases();
  const [id, other] = [newId<"lease">(), newId<"lease">()];
  await leases.insert(id, "delivery");
  expect(await leases.beat(id, "delivery")).toEqual([{ id, beat: 0 }]);
  await leases.insert(id, "delivery");
  await leases.insert(other, "api");
  const { rows } = await database.pool.query("SELECT id, kind, host, version FROM leases ORDER BY id");
  expect(rows).toEqual([
    { id, kind: "delivery", host: hostname(), version: expect.stringMatching(/^\d+\.\d+\.\d+/) },
    expect.objectContaining({ id: other, kind: "api" }),
  ]);
  expect(await leases.beat(other, "api")).toEqual([
    { id, beat: 1 },
    { id: other, beat: 0 },
  ]);
  await leases.remove(id);
  expect(await leases.beat(id, "delivery")).toBeUndefined();
  expect(await leases.beat(other, "api")).toEqual([{ id: other, beat: 1 }]);
});

test("a beat sets the kind of its lease, and of no other", async () => {
  const { database, leases } = await openLeases();
  const [id, other] = [newId<"lease">(), newId<"lease">()];
  for (const each of [id, other]) await leases.insert(each, "delivery");
  const kinds = async () => (await database.pool.query("SELECT id, kind FROM leases ORDER BY id")).rows;
  await leases.beat(id, "api");
  expect(await kinds()).toEqual([
    { id, kind: "api" },
    { id: other, kind: "delivery" },
  ]);
  await leases.beat(id, "delivery");
  expect(await kinds()).toMatchObject([{ kind: "delivery" }, { kind: "delivery" }]);
});

test("a beat says when it was", async () => {
  const { database, leases } = await openLeases();
  const id = newId<"lease">();
  await leases.insert(id, "api");
  await database.pool.query("UPDATE leases SET beaten_at = '2026-01-01'");
  await leases.beat(id, "delivery");
  const { rows } = await database.pool.query("SELECT beaten_at > now() - interval '1 minute' AS now FROM leases");
  expect(rows).toEqual([{ now: true }]);
});

test("the dead go, whoever beat meanwhile stays, and their shards are free for all who listen", async () => {
  const { database, leases } = await openLeases();
  const [dead, beating] = [newId<"lease">(), newId<"lease">()];
  for (const id of [dead, beating]) await leases.insert(id, "delivery");
  await database.pool.query("UPDATE shards SET lease_id = $1 WHERE shard = 7", [dead]);
  const listening = await database.connectDirectly();
  onTestFinished(() => listening.end());
  const told: string[] = [];
  listening.on("notification", ({ channel }) => told.push(channel));
  await listening.query("LISTEN paybell_shards");

  const seen = (await leases.beat(beating, "delivery")) ?? [];
  expect(await leases.removeDead(seen)).toEqual([dead]);
  await expect.poll(() => told).toEqual(["paybell_shards"]);
  expect((await database.pool.query("SELECT lease_id FROM shards WHERE shard = 7")).rows).toEqual([{ lease_id: null }]);
  expect(await leases.beat(beating, "delivery")).toEqual([{ id: beating, beat: 1 }]);

  expect(await leases.removeDead(seen)).toEqual([]);
  await listening.query("SELECT");
  expect(told).toHaveLength(1);
});

test("a connection that falls silent costs no lease: the next beat goes over another, and missed hints are made up for", async () => {
  const { url, drop } = await createDatabase();
  onTestFinished(drop);
  const proxy = await freezingProxy(url);
  const database = connectionsTo(proxy.url, 6);
  onTestFinished(() => database.close());
  const listener = new PostgresListener({
    connect: () => database.connectDirectly(),
    onTrouble: () => undefined,
  });
  onTestFinished(() => listener.stop());
  const told: string[] = [];
  listener.on("paybell_due", (payload) => told.push(payload));
  const troubles: unknown[] = [];
  const lost: unknown[] = [];
  const lease = new Lease({
    store: postgresLeases(() => listener.connection()),
    clock: systemClock,
    timers: systemTimers,
    onTrouble: (error) => troubles.push(error),
  });
  await lease.start({ onLost: () => lost.push("lost") });
  onTestFinished(() => lease.stop());
  const before = lease.current();
  expect(before).toBeDefined();
  proxy.freeze();
  await expect.poll(() => troubles).not.toEqual([]);
  await expect.poll(() => lease.remainingMs()).toBeGreaterThan(4_000);
  expect(lease.current()).toBe(before);
  expect(lost).toEqual([]);
  expect(told).toEqual(["", ""]);
});

/**
 * A proxy in front of PostgreSQL. Connections that exist when it freezes get no more answers, and stay open; new ones
 * work.
 */
async function freezingProxy(url: string): Promise<{ readonly url: string; freeze(): void }> {
  const { host, port, user = "", password = "", database = "" } = new Client({ connectionString: url });
  const open: (readonly [Socket, Socket])[] = [];
  const server = createServer((client) => {
    const postgres = createConnection(join(host, `.s.PGSQL.${port}`));
    for (const socket of [client, postgres]) socket.on("error", () => undefined);
    client.pipe(postgres).pipe(client);
    open.push([client, postgres]);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(async () => {
    for (const socket of open.flat()) socket.destroy();
    server.close();
    await once(server, "close");
  });
  const { port: ownPort } = server.address() as AddressInfo;
  return {
    url: `postgres://${user}:${encodeURIComponent(password ?? "")}@127.0.0.1:${ownPort}/${database}`,
    freeze() {
      for (const [client, postgres] of open) {
        client.unpipe(postgres);
        postgres.unpipe(client);
      }
    },
  };
}

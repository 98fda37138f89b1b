import { once } from "node:events";
import { type AddressInfo, createConnection, createServer, type Socket } from "node:net";
import { join } from "node:path";
import { Client } from "pg";
import { expect, onTestFinished, test, vi } from "vitest";
import { createDatabase } from "../../../../test/support/database.ts";
import { systemClock } from "../clock.ts";
import { InstanceLease } from "../instance.ts";
import { openDatabase } from "./database.ts";
import { PostgresInstances } from "./instances.ts";
import { Listener } from "./listener.ts";

test("a connection that falls silent costs no lease: the next renewal goes over another", async () => {
  const { url, drop } = await createDatabase();
  onTestFinished(drop);
  const proxy = await freezingProxy(url);
  const database = openDatabase(proxy.url, { connectionsMax: 6, onIdleError: () => undefined });
  onTestFinished(() => database.close());
  const listener = new Listener({
    connect: () => database.connectDirectly(),
    onNotify: () => undefined,
    onTrouble: () => undefined,
    channels: ["paybell_due"],
  });
  onTestFinished(() => listener.stop());
  const troubles: unknown[] = [];
  const lease = new InstanceLease(new PostgresInstances(() => listener.connection()), systemClock, (error) =>
    troubles.push(error),
  );
  await lease.start();
  onTestFinished(() => lease.stop());
  const before = lease.current();
  proxy.freeze();
  await vi.waitFor(() => expect(troubles).toHaveLength(1), { timeout: 8_000, interval: 20 });
  await vi.waitFor(() => expect(lease.remainingMs()).toBeGreaterThan(7_000), { timeout: 8_000, interval: 20 });
  expect(lease.current()).toEqual(before);
}, 20_000);

/** In front of PostgreSQL. What is connected when it is frozen hears nothing more, and stays open; others go on. */
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

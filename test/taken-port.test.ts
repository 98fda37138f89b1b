import { once } from "node:events";
import { chmod, mkdtemp, readdir, rm } from "node:fs/promises";
import { type AddressInfo, createServer, type Server } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { spawnPaybell } from "./support/instance.ts";
import { freePort } from "./support/ports.ts";

let home: string;
let holder: Server;
let port: string;

beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), "paybell-port-"));
  await chmod(home, 0o711);
  holder = createServer();
  await once(holder.listen(0, "127.0.0.1"), "listening");
  port = String((holder.address() as AddressInfo).port);
});
afterAll(async () => {
  await once(holder.close(), "close");
  await rm(home, { recursive: true, force: true });
});

const databaseUrl = "postgres://127.0.0.1:9/none";
const masterKey = Buffer.alloc(32, 1).toString("base64");

test.each(["sandbox", "serve"])("%s reports a used port before it starts anything", async (command) => {
  const env = { PAYBELL_HOME: home, PAYBELL_PORT: port, PAYBELL_HOST: "127.0.0.1", PAYBELL_MASTER_KEY: masterKey };
  const started = spawnPaybell([command], command === "serve" ? { ...env, DATABASE_URL: databaseUrl } : env);
  expect(await started.exited).toBe(1);
  expect(started.output()).toContain(`port ${port} is in use by another program`);
  // Neither data nor a PostgreSQL was created.
  expect(await readdir(home)).toEqual([]);
});

test("serve requires a database, and starts none of its own", async () => {
  const env = { PAYBELL_HOME: home, PAYBELL_PORT: String(await freePort()), PAYBELL_MASTER_KEY: masterKey };
  const started = spawnPaybell(["serve"], env);
  expect(await started.exited).toBe(1);
  expect(started.output()).toContain("DATABASE_URL is required: PostgreSQL, version 15 or later");
  expect(await readdir(home)).toEqual([]);
});

test("a used operators' port is reported with its setting", async () => {
  const started = spawnPaybell(["serve"], {
    PAYBELL_HOME: home,
    PAYBELL_PORT: String(await freePort()),
    PAYBELL_OPERATOR_PORT: port,
    PAYBELL_MASTER_KEY: masterKey,
    DATABASE_URL: databaseUrl,
  });
  expect(await started.exited).toBe(1);
  expect(started.output()).toContain(`port ${port} is in use by another program`);
  expect(started.output()).toContain("PAYBELL_OPERATOR_PORT");
});

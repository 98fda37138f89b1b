import { randomBytes } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import type { ReceiverOptions } from "@paybell/partner";
import { afterEach, beforeAll, beforeEach, expect, onTestFinished, test } from "vitest";
import { byTheLibrary, startEndpoint } from "../certify/endpoints.ts";
import { createDatabase, type TestDatabase } from "../support/database.ts";
import { type SpokenProcess, spawnProgram } from "../support/instance.ts";
import { freePort } from "../support/ports.ts";
import { packAll, run } from "./project.ts";

const name = `paybell-${process.platform}-${process.arch}`;
let paybell = "";
let folder = "";
beforeAll(async () => {
  paybell = join((await packAll()).directory, name);
});
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "paybell-executable-"));
});
afterEach(() => rmSync(folder, { recursive: true }));

/** In an empty folder, with an environment that has no PATH. */
const command = (args: readonly string[], env: NodeJS.ProcessEnv = {}) =>
  run(paybell, [...args], { cwd: folder, env: { ...env } });
const start = (args: readonly string[], env: NodeJS.ProcessEnv) => spawnProgram(paybell, args, { cwd: folder, env });

async function emptyDatabase(): Promise<TestDatabase> {
  const database = await createDatabase({ isMigrated: false });
  onTestFinished(() => database.drop());
  return database;
}

async function stop(service: SpokenProcess): Promise<void> {
  service.signal("SIGTERM");
  expect(await service.exited, service.output()).toBe(0);
}

test("the executable prints its version and its commands", async () => {
  const { version } = JSON.parse(readFileSync(join(import.meta.dirname, "../../packages/cli/package.json"), "utf8"));
  expect((await command(["--version"])).stdout).toBe(`${version}\n`);
  const { stdout } = await command(["--help"]);
  for (const one of ["certify", "listen", "trigger", "serve", "migrate", "check"])
    expect(stdout).toContain(`  ${one} `);
});

test("the licences of Node and of every package in the executable and its pages are next to it", () => {
  const text = readFileSync(join(dirname(paybell), "THIRD-PARTY-LICENSES"), "utf8");
  const sections = text.split(`\n\n${"-".repeat(80)}\n\n`);
  const titles = sections.map((section) => section.split(":")[0]);

  const needed = ["cli", "server"].flatMap((name) => {
    const manifest = readFileSync(join(import.meta.dirname, "../../packages", name, "package.json"), "utf8");
    return Object.entries<string>(JSON.parse(manifest).dependencies).filter(([one]) => !one.startsWith("@paybell/"));
  });
  expect(needed.length).toBeGreaterThan(15);
  expect(titles).toEqual(expect.arrayContaining(needed.map(([name, version]) => `${name} ${version}`)));
  expect(text).toContain("Node.js is licensed for use as follows");
  for (const name of ["react", "@vue/runtime-dom", "vitepress", "minisearch", "@scalar/fastify-api-reference"])
    expect(text).toContain(`## ${name} - `);
  // Used only to build it.
  expect(text).not.toMatch(/^(?:rolldown|typescript|vitest) /m);
  // Below its title each has a text.
  expect(sections.filter((section) => !section.includes("\n\n"))).toEqual([]);
});

test("the executable certifies an endpoint", async () => {
  const key = () => randomBytes(32).toString("base64");
  const keys: ReceiverOptions = { encryptionKey: key(), signingKey: key(), webhookSecret: `whsec_${key()}` };
  const endpoint = await startEndpoint(byTheLibrary(keys));
  onTestFinished(() => endpoint.close());
  writeFileSync(join(folder, "keys.json"), JSON.stringify(keys));
  const args = ["certify", endpoint.url.href, "--credentials", "keys.json", "--only", "sale,bad-signature"];
  expect((await command(args)).stdout).toContain("PASSED: 2 passed, 0 failed");
});

test("the executable migrates a database, checks it, and serves console, documents and commands", async () => {
  const database = await emptyDatabase();
  const [port, operatorPort] = [await freePort(), await freePort()];
  const env = {
    DATABASE_URL: database.url,
    PAYBELL_MASTER_KEY: randomBytes(32).toString("base64"),
    PAYBELL_OPERATOR_TOKEN: randomBytes(32).toString("hex"),
    PAYBELL_HOME: folder,
    PAYBELL_HOST: "127.0.0.1",
    PAYBELL_PORT: String(port),
    PAYBELL_OPERATOR_PORT: String(operatorPort),
    PAYBELL_STOP_NOTICE_MS: "0",
    // Each of these loads code that nothing else does.
    OTEL_EXPORTER_OTLP_ENDPOINT: "http://127.0.0.1:1",
    PAYBELL_ALERT_MAIL_URL: "smtp://127.0.0.1:1",
    PAYBELL_ALERT_MAIL_FROM: "paybell@example.com",
    PAYBELL_ALERT_MAIL_TO: "operator@example.com",
  };
  expect((await command(["migrate"], env)).stdout).toMatch(/^Applied 0001_baseline\.sql, /);
  expect((await command(["migrate"], env)).stdout).not.toContain("Applied");
  const kafka = { ...env, PAYBELL_KAFKA_BROKERS: "127.0.0.1:1", PAYBELL_KAFKA_TOPIC: "completions" };
  const checked = (await command(["check"], kafka).catch((error: { stdout: string }) => error)).stdout;
  expect(checked).toMatch(/^ok {7}schema {14}is this version's$/m);
  expect(checked).toMatch(/^ERROR {4}Kafka {15}Cannot connect to any broker/m);

  const service = start(["serve"], env);
  await service.said((line) => (line.includes('"msg":"ready"') ? line : undefined));
  const operators = `http://127.0.0.1:${operatorPort}`;
  const page = await (await fetch(`${operators}/console`)).text();
  const assets = [...page.matchAll(/\/console\/assets\/[\w.-]+/g)].map(([path]) => path);
  expect(assets.length).toBeGreaterThan(1);
  const guides = ["/docs/", "/docs/api", "/docs/js/scalar.js", "/docs/operator/production", "/openapi.json"];
  for (const path of [...assets, ...guides, "/readyz", "/metrics"])
    expect(await statusOf(operators + path), path).toBe(200);
  const listed = await command(["partner", "list", "--url", operators], env);
  expect(listed.stderr).toBe("");
  expect(await statusOf(`http://127.0.0.1:${port}/docs/partner/certify`)).toBe(200);
  await stop(service);
});

/** Reads the answer to its end: a connection whose answer is not read stays open. */
async function statusOf(url: string): Promise<number> {
  const response = await fetch(url);
  await response.arrayBuffer();
  return response.status;
}

test("the executable's sandbox requires a PostgreSQL, and runs on that of DATABASE_URL", async () => {
  for (const one of ["sandbox", "check", "migrate"]) {
    await expect(command([one]), one).rejects.toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/^paybell: This file has no PostgreSQL in it\. Set DATABASE_URL to [^\n]*\n$/),
    });
  }
  const database = await emptyDatabase();
  const port = String(await freePort());
  const sandbox = start(["sandbox"], { DATABASE_URL: database.url, PAYBELL_PORT: port, PAYBELL_HOME: ".paybell" });
  await sandbox.said((line) => (line === `'${paybell}' trigger sale` ? line : undefined));
  await sandbox.said((line) => (line.includes("Ctrl-C stops") ? line : undefined));
  expect(JSON.parse((await command(["trigger", "sale", "--json"])).stdout)).toMatchObject({
    transaction: { status: "SUCCESS" },
    notification: { state: "accepted" },
  });
  await stop(sandbox);
});

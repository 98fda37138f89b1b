import { type ChildProcess, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { request } from "node:https";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { setTimeout as pause } from "node:timers/promises";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { makeAuthority } from "../../packages/server/src/delivery/transport/transport.fixture.ts";
import { ops, run } from "../ops/files.ts";
import { sale } from "../support/commands.ts";
import { createDatabase, type TestDatabase } from "../support/database.ts";
import { type Instance, type InstanceOptions, partnerHost, spawnInstance } from "../support/instance.ts";
import { freePort } from "../support/ports.ts";
import { needs, pathOf } from "../support/programs.ts";
import { eventually, operatorToken, type TestPartner } from "../support/service.ts";
import { listening } from "../support/temporary.ts";

// The samples as they are, but for names, ports and files, in front of two instances.
const folder = mkdtempSync(join(tmpdir(), "paybell-proxy-"));
chmodSync(folder, 0o755);
const authority = await makeAuthority("Proxies");
const certificate = await authority.issue("paybell.example");
let database: TestDatabase;
let instances: Instance[] = [];
let partner: TestPartner | undefined;
let options: InstanceOptions;

beforeAll(async () => {
  database = await createDatabase();
  const { host, callsLoopback } = partnerHost();
  const env = {
    PAYBELL_TRUSTED_PROXIES: "127.0.0.1",
    PAYBELL_OPERATOR_ADDRESSES: "127.0.0.1,127.0.0.5",
    // The time that proxies get by default, in place of none.
    PAYBELL_STOP_NOTICE_MS: "3000",
  };
  options = { databaseUrl: database.url, masterKey: randomBytes(32), callsLoopback, env };
  instances = await Promise.all([spawnInstance(options), spawnInstance(options)]);
  partner = await instances[0]?.register({ callingAddresses: ["127.0.0.3/32"] }, { host });
  writeFileSync(join(folder, "paybell.crt"), certificate.cert);
  writeFileSync(join(folder, "paybell.key"), certificate.key, { mode: 0o644 });
});
afterAll(async () => {
  await partner?.server.close();
  for (const instance of instances) instance.signal("SIGTERM");
  for (const instance of instances) expect(await instance.exited).toBe(0);
  await database.drop();
  rmSync(folder, { recursive: true, force: true });
});

let proxy: ChildProcess | undefined;
afterEach(async () => {
  const exited = proxy && once(proxy, "exit");
  proxy?.kill("SIGTERM");
  await exited;
  proxy = undefined;
});

/** The host and port of each instance, in the sample's places. */
function pointed(sample: string): string {
  let text = readFileSync(join(ops, sample), "utf8");
  for (const [at, { baseUrl, operatorUrl }] of instances.entries()) {
    const [partners, operators] = [new URL(baseUrl).host, new URL(operatorUrl).host];
    text = text.replace(`paybell-${at + 1}:7420`, partners);
    text = text.replace(`127.0.0.1:743${at + 1}`, partners).replace(`127.0.0.1:744${at + 1}`, operators);
  }
  return text;
}

/** The arguments that give nginx its sample, with a port for partners and one for operators. */
function nginxOn(
  [port, operatorPort]: readonly [number, number],
  change: (sample: string) => string = (same) => same,
): readonly string[] {
  const sample = [pointed("nginx/upstream.conf"), readFileSync(join(ops, "nginx/paybell.conf"), "utf8")]
    .join("\n")
    .replace("listen 443 ssl", `listen 127.0.0.1:${port} ssl`)
    .replace("listen 8443 ssl", `listen 127.0.0.1:${operatorPort} ssl`)
    .replaceAll("/etc/nginx/tls", folder);
  const temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map((name) => `${name}_temp_path ${folder};`);
  writeFileSync(
    join(folder, "nginx.conf"),
    `daemon off; pid ${folder}/nginx.pid; error_log stderr; events {}
     http { access_log off; ${temporary.join(" ")}\n${change(sample)}\n}`,
  );
  return ["-e", "stderr", "-p", folder, "-c", join(folder, "nginx.conf")];
}

/** The arguments that give Caddy its sample, with a certificate of ours: no authority certifies an example. */
function caddyOn(port: number, change: (sample: string) => string = (same) => same): readonly string[] {
  const tls = `tls ${join(folder, "paybell.crt")} ${join(folder, "paybell.key")}`;
  const sample = pointed("caddy/Caddyfile").replace(
    "paybell.example {",
    `{\n\tadmin off\n\tauto_https off\n}\nhttps://paybell.example:${port} {\n\tbind 127.0.0.1\n\t${tls}`,
  );
  writeFileSync(join(folder, "Caddyfile"), change(sample));
  return ["--adapter", "caddyfile", "--config", join(folder, "Caddyfile")];
}
const caddyEnv = { ...process.env, HOME: folder, XDG_DATA_HOME: folder, XDG_CONFIG_HOME: folder };

describe("nginx", needs("nginx"), () => {
  const judge = (args: readonly string[]) => run(pathOf("nginx"), ["-t", ...args]);

  test("accepts the sample without a warning, and names a directive that it does not know", async () => {
    const ports = [await freePort(), await freePort()] as const;
    const { stderr } = await judge(nginxOn(ports));
    expect(stderr).toMatch(/^nginx: .*syntax is ok\nnginx: .*test is successful\n$/);
    const wrong = nginxOn(ports, (sample) => sample.replace("proxy_read_timeout", "proxy_reading_timeout"));
    await expect(judge(wrong)).rejects.toMatchObject({ stderr: expect.stringContaining("proxy_reading_timeout") });
  });

  test("terminates TLS, forwards the caller's address, and keeps its promise while instances restart", async () => {
    const [port, operatorPort] = [await freePort(), await freePort()];
    proxy = spawn(pathOf("nginx"), nginxOn([port, operatorPort]), { stdio: ["ignore", "ignore", "inherit"] });
    await expectProxy(port);
    for (const [from, status] of [
      ["127.0.0.5", 200],
      ["127.0.0.6", 403],
    ] as const) {
      for (const path of ["/console", "/readyz"])
        expect([from, path, (await call(operatorPort, from, { path })).status]).toEqual([from, path, status]);
    }
    // Also on its own refusals, and once.
    for (const path of ["/v1/self", `/${"x".repeat(40_000)}`]) {
      expect(await hstsOf(port, path), path.slice(0, 10)).toEqual(["max-age=31536000"]);
    }
    await expectCalmRestarts(port, operatorPort);
  });

  test("repeats a command that an instance broke off, and nothing else that changes something", async () => {
    const { port, seen } = await dying();
    const [own, operatorPort] = [await freePort(), await freePort()];
    const change = (sample: string) => sample.replaceAll(/server 127\.0\.0\.1:\d+/g, `server 127.0.0.1:${port}`);
    proxy = spawn(pathOf("nginx"), nginxOn([own, operatorPort], change), { stdio: ["ignore", "ignore", "inherit"] });
    await expectOnce(own, seen);
  });
});

describe("Caddy", needs("caddy"), () => {
  const judge = (args: readonly string[]) => run(pathOf("caddy"), ["validate", ...args], { env: caddyEnv });

  test("accepts the sample, as it is too, and names a directive that it does not know", async () => {
    const port = await freePort();
    expect((await judge(caddyOn(port))).stdout).toContain("Valid configuration");
    const shipped = ["--adapter", "caddyfile", "--config", join(ops, "caddy/Caddyfile")];
    expect((await judge(shipped)).stdout).toContain("Valid configuration");
    const wrong = caddyOn(port, (sample) => sample.replace("health_uri", "health_path_and_query"));
    await expect(judge(wrong)).rejects.toMatchObject({ stderr: expect.stringContaining("health_path_and_query") });
  });

  test("terminates TLS, forwards the caller's address, and keeps its promise while instances restart", async () => {
    const port = await freePort();
    proxy = spawn(pathOf("caddy"), ["run", ...caddyOn(port)], { env: caddyEnv, stdio: "ignore" });
    await expectProxy(port);
    await expectCalmRestarts(port);
  });

  test("repeats a command that an instance broke off, and nothing else that changes something", async () => {
    const [{ port, seen }, own] = [await dying(), await freePort()];
    const change = (sample: string) =>
      sample
        .replace(/reverse_proxy .* \{/, `reverse_proxy 127.0.0.1:${port} {`)
        .replace("try_duration 5s", "retries 1");
    proxy = spawn(pathOf("caddy"), ["run", ...caddyOn(own, change)], { env: caddyEnv, stdio: "ignore" });
    await expectOnce(own, seen);
  });
});

/** An instance that is killed each time, once it has read a request. */
async function dying(): Promise<{ readonly port: number; readonly seen: string[] }> {
  const seen: string[] = [];
  const server = createServer(({ method, url, socket }, answer) => {
    if (url === "/healthz") return answer.end();
    seen.push(`${method} ${url}`);
    return socket.destroy();
  });
  return { port: await listening(server), seen };
}

async function expectOnce(port: number, seen: string[]): Promise<void> {
  await eventually("the proxy to listen", () => listens(port));
  for (const [path, times, json] of [
    ["/v1/commands", 2, null],
    ["/v1/self", 2, undefined],
    ["/v1/redeliveries", 1, {}],
    ["/v1/keys/rotate", 1, {}],
    ["/v1/notifications/1/redeliver", 1, null],
  ] as const) {
    const { status } = await call(port, "127.0.0.3", { path, json });
    expect([status, seen.splice(0).length], path).toEqual([502, times]);
  }
}

async function expectProxy(port: number): Promise<void> {
  await eventually("the proxy to listen", () => listens(port));
  expect(await self(port, "127.0.0.3")).toBe(200);
  // An address that a caller wrote there is ignored.
  expect(await self(port, "127.0.0.4", { "x-forwarded-for": "127.0.0.3" })).toBe(403);
  // Every instance serves it, in turn.
  expect(await Promise.all([1, 2, 3, 4].map(() => self(port, "127.0.0.3")))).toEqual([200, 200, 200, 200]);
  // The operators' routes are missing on it.
  expect(await self(port, "127.0.0.3", {}, "/metrics")).toBe(404);
}

/** Each instance once. TEST_RESTARTS=20 TEST_TILLS=16 TEST_PAUSE_MS=0 for more: on two cores fifty commands a second. */
const tills = Number(process.env["TEST_TILLS"] ?? 4);
const restarts = Number(process.env["TEST_RESTARTS"] ?? 2);
/** Of each till after an answer: an instance that starts meanwhile needs the processor more. */
const pauseMs = Number(process.env["TEST_PAUSE_MS"] ?? 100);

/** The instances are stopped and started again in turn, the next one as soon as the last one is ready. */
async function expectCalmRestarts(port: number, operatorPort?: number): Promise<void> {
  let isOver = false;
  const answers = new Map<string, number>();
  const loads = Array.from({ length: tills }, async (_, till) => {
    while (!isOver) {
      const command = sale({ tid: `T00000${10 + till}` });
      const { status, body } = await call(port, "127.0.0.3", { path: "/v1/commands", json: command });
      const { status: state = "", isoResponseCode = "" } = status === 200 ? JSON.parse(body) : {};
      const answer = status === 200 ? `${status} ${state} ${isoResponseCode}` : `${status} ${body}`;
      answers.set(answer, (answers.get(answer) ?? 0) + 1);
      await pause(pauseMs);
    }
  });
  const operators = async (operatorsAt: number) => {
    const seen = new Set<number>();
    while (!isOver) {
      const authorization = `Bearer ${operatorToken}`;
      const asked = { path: "/operator/v1/partners", headers: { authorization } };
      seen.add((await call(operatorsAt, "127.0.0.5", asked)).status);
      await pause(pauseMs);
    }
    expect([...seen]).toEqual([200]);
  };
  if (operatorPort !== undefined) loads.push(operators(operatorPort));
  const startedAt = Date.now();
  for (let restart = 0; restart < restarts; restart += 1) {
    const nth = restart % instances.length;
    const leaving = instances[nth] as Instance;
    leaving.signal("SIGTERM");
    expect(await leaving.exited, leaving.output()).toBe(0);
    const env = {
      ...options.env,
      PAYBELL_PORT: new URL(leaving.baseUrl).port,
      PAYBELL_OPERATOR_PORT: new URL(leaving.operatorUrl).port,
    };
    instances[nth] = await spawnInstance({ ...options, env });
  }
  isOver = true;
  await Promise.all(loads);
  expect([...answers.keys()], JSON.stringify([...answers])).toEqual(["200 SUCCESS 00"]);
  const [count = 0] = answers.values();
  const aSecond = Math.round((count * 1_000) / (Date.now() - startedAt));
  process.stdout.write(`${restarts} restarts, ${count} commands, ${aSecond} a second\n`);
}

function listens(port: number): Promise<true | undefined> {
  return new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1");
    socket.once("connect", () => resolve(true)).once("error", () => resolve(undefined));
    socket.once("connect", () => socket.destroy());
  });
}

async function self(port: number, from: string, headers = {}, path = "/v1/self"): Promise<number> {
  return (await call(port, from, { path, headers })).status;
}

interface ProxyCall {
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** A POST of this; null: without a body, which Caddy repeats only so. */
  readonly json?: unknown;
}

function call(port: number, from: string, { path, headers, json }: ProxyCall) {
  return new Promise<{ readonly status: number; readonly body: string }>((resolve, reject) => {
    const asked = request({
      host: "127.0.0.1",
      port,
      path,
      method: json === undefined ? "GET" : "POST",
      localAddress: from,
      servername: "paybell.example",
      ca: authority.cert,
      agent: false,
      headers: {
        host: `paybell.example:${port}`,
        authorization: `Bearer ${partner?.secrets.apiKey}`,
        ...(json != null && { "content-type": "application/json" }),
        ...headers,
      },
    });
    asked.once("response", async (response) => {
      resolve({ status: response.statusCode ?? 0, body: await text(response) });
    });
    asked.once("error", reject).end(json == null ? undefined : JSON.stringify(json));
  });
}

function hstsOf(port: number, path: string): Promise<readonly string[] | undefined> {
  return new Promise((resolve, reject) => {
    const asked = request({ host: "127.0.0.1", port, path, servername: "paybell.example", ca: authority.cert });
    asked.once("response", (response) => {
      response.resume().once("end", () => resolve(response.headersDistinct["strict-transport-security"]));
    });
    asked.once("error", reject).end();
  });
}

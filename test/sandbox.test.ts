import { once } from "node:events";
import { chmod, mkdtemp, readdir, readFile, rm, stat } from "node:fs/promises";
import { createServer, request, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { post, postDefaults } from "@paybell/partner/certify";
import { sampleIpn } from "@paybell/partner/testing";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { profile } from "../packages/server/src/acquirer/iso8583/example-profile.fixture.ts";
import { FakeHost } from "../packages/server/src/acquirer/iso8583/link/fake-host.fixture.ts";
import { sale } from "./support/commands.ts";
import { type SpokenProcess, spawnPaybell } from "./support/instance.ts";
import { freePort } from "./support/ports.ts";
import { callHttp, eventually } from "./support/service.ts";

type Credentials = Readonly<Record<string, string>>;

let home: string;
let sandbox: SpokenProcess;
let credentials: Credentials;
beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), "paybell-sandbox-"));
  // PostgreSQL's own user must be able to reach its data below this folder.
  await chmod(home, 0o711);
  sandbox = spawnPaybell(["sandbox"], { PAYBELL_HOME: home, PAYBELL_PORT: String(await freePort()) });
  await sandbox.said((line) => line.match(/ready in/));
  credentials = JSON.parse(await readFile(join(home, "sandbox.json"), "utf8")) as Credentials;
});
afterAll(async () => {
  sandbox.signal("SIGKILL");
  await sandbox.exited;
  await rm(home, { recursive: true, force: true });
});

function baseUrl(): string {
  return credentials["baseUrl"] ?? "";
}

function call(method: string, path: string, json: unknown, keyName = "apiKey") {
  return callHttp(baseUrl(), method, path, { key: credentials[keyName] ?? "", json });
}

test("keeps its credentials for its owner alone, under the documented names", async () => {
  expect(Object.keys(credentials).sort()).toEqual([
    "apiKey",
    "baseUrl",
    "encryptionKey",
    "operatorToken",
    "partnerId",
    "receiverUrl",
    "signingKey",
    "webhookSecret",
  ]);
  for (const name of await readdir(home)) {
    if (!/\.(json|key|pem)$/.test(name)) continue;
    const { mode } = await stat(join(home, name));
    expect((mode & 0o777).toString(8), name).toBe("600");
  }
});

test("is ready, and answers callers of this machine by its local names alone", async () => {
  const { port } = new URL(baseUrl());
  const get = async (headers: Readonly<Record<string, string>>) => {
    const asked = request({ host: "127.0.0.1", port, path: "/readyz", headers }).end();
    const [response] = await once(asked, "response");
    let text = "";
    for await (const chunk of response) text += chunk;
    return { status: response.statusCode, body: JSON.parse(text) as Record<string, unknown> };
  };
  for (const name of ["localhost", "127.0.0.1", "[::1]"]) {
    expect(await get({ host: `${name}:${port}` })).toMatchObject({ status: 200, body: { ready: true } });
  }
  const refusal = { status: 403, body: { code: "host_not_allowed" } };
  expect(await get({ host: `paybell.example:${port}` })).toMatchObject(refusal);
  expect(await get({ host: `localhost:${port}`, origin: "https://evil.example" })).toMatchObject(refusal);
  expect(await get({ host: `localhost:${port}`, origin: `http://localhost:${port}` })).toMatchObject({ status: 200 });
});

test("SIGUSR1 opens no inspector", async () => {
  sandbox.signal("SIGUSR1");
  const { status } = await callHttp(baseUrl(), "GET", "/healthz", { key: null });
  expect(status).toBe(200);
  // Printed after any effect of the signal.
  await call("POST", "/v1/commands", sale({ merchantTransId: "after-the-signal" }));
  await sandbox.said((line) => line.match(/after-the-signal/));
  expect(sandbox.output()).not.toContain("Debugger");
});

test("a Sale's IPN appears in the terminal", async () => {
  const { status, body } = await call("POST", "/v1/commands", sale({ merchantTransId: "order-of-the-terminal" }));
  expect(status).toBe(200);
  await sandbox.said((line) => line.match(/\[IPN\].*SALE/i));
  await sandbox.said((line) => line.includes(String(body["id"])) || undefined);
  await sandbox.said((line) => line.match(/order-of-the-terminal/));
});

test("a decline and a time-out are shown as what they are", async () => {
  const { body } = await call("POST", "/v1/commands", sale({ card: { token: "tok_decline_51" } }));
  expect(body).toMatchObject({ status: "ERROR", isoResponseCode: "51" });
  await sandbox.said((line) => line.match(/\b51\b/));
});

test("sends the commands of a terminal to the acquirer that was registered for it", async () => {
  const host = await FakeHost.listen();
  const { partnerId } = credentials;
  const put = (path: string, json: unknown) => call("PUT", `/operator/v1/${path}`, json, "operatorToken");
  const registration = { profile, hosts: [`127.0.0.1:${host.port}`], tls: "off" };
  expect((await put("acquirers/own-host", registration)).body).toMatchObject({ name: "own-host" });
  const terminal = { mid: "M00000000000002", acquirer: "own-host" };
  expect((await put(`partners/${partnerId}/terminals/T0000077`, terminal)).status).toBe(200);
  await host.hears("0800");
  const { body } = await call("POST", "/v1/commands", sale({ tid: "T0000077", mid: "M00000000000002" }));
  expect(body).toMatchObject({ status: "SUCCESS", tid: "T0000077" });
  expect(host.heard.filter(({ mti }) => mti === "0200").map(({ fields }) => fields.get(41))).toEqual(["T0000077"]);
  await host.close();
});

test("its receiver accepts what was sealed with the keys before a rotation, as what is in flight is", async () => {
  const { partnerId, receiverUrl = "", encryptionKey = "", signingKey = "", webhookSecret = "" } = credentials;
  const rotation = { key: "signingKey", overlapHours: 0 };
  await call("POST", `/operator/v1/partners/${partnerId}/keys/rotate`, rotation, "operatorToken");
  await eventually("the receiver to have the new key", async () => {
    const now = JSON.parse(await readFile(join(home, "sandbox.json"), "utf8")) as Credentials;
    return now["signingKey"] !== signingKey || undefined;
  });
  const [ca = ""] = /-----BEGIN CERT.*/s.exec(await readFile(join(home, "receiver.pem"), "utf8")) ?? [];
  const { body, headers } = sampleIpn({}, { encryptionKey, signingKey, webhookSecret });
  const answer = await post(new URL(receiverUrl), { method: "POST", headers, body }, { ...postDefaults, ca });
  expect(answer).toMatchObject({ status: 204 });
});

describe("another program in its folder and on its port", () => {
  const env = () => ({ PAYBELL_HOME: home, PAYBELL_PORT: new URL(baseUrl()).port });

  test("names its process id if it is a sandbox, too", async () => {
    const second = spawnPaybell(["sandbox"], env());
    expect(await second.exited).toBe(1);
    expect(second.output()).toContain(String(sandbox.pid));
  });

  test("does not blame it if it has a database of its own", async () => {
    const served = spawnPaybell(["serve"], {
      ...env(),
      PAYBELL_HOST: "127.0.0.1",
      PAYBELL_MASTER_KEY: Buffer.alloc(32, 1).toString("base64"),
      DATABASE_URL: "postgres://127.0.0.1:9/none",
    });
    expect(await served.exited).toBe(1);
    expect(served.output()).toContain(`port ${env().PAYBELL_PORT} is in use by another program`);
    expect(served.output()).not.toContain("is using");
  });
});

/** The last, because it stops the sandbox. */
test("Ctrl-C lets what is in flight finish, then stops everything, PostgreSQL last", async () => {
  const held = Promise.withResolvers<ServerResponse>();
  const slow = createServer((_, response) => held.resolve(response));
  await once(slow.listen(0, "127.0.0.1"), "listening");
  const callBackUrl = `http://127.0.0.1:${(slow.address() as AddressInfo).port}/slow`;
  expect((await call("POST", "/v1/commands", sale({ callBackUrl }))).status).toBe(200);
  const response = await held.promise;
  const postmaster = Number((await readFile(join(home, "postgres", "postmaster.pid"), "utf8")).split("\n")[0]);
  expect(process.kill(postmaster, 0)).toBe(true);

  sandbox.signal("SIGINT");
  await sandbox.said((line) => line.match(/1 in flight/));
  expect(process.kill(postmaster, 0)).toBe(true);
  response.writeHead(204).end();
  expect(await sandbox.exited, sandbox.output()).toBe(0);
  expect(sandbox.output()).toContain("No notification is waiting.");
  expect(() => process.kill(postmaster, 0)).toThrow("ESRCH");
  const closed = once(slow.close(), "close");
  slow.closeAllConnections();
  await closed;
});

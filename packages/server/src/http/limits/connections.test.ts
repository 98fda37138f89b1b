import { EventEmitter, once } from "node:events";
import { ServerResponse } from "node:http";
import { connect, type Socket } from "node:net";
import { Readable } from "node:stream";
import { afterEach, describe, expect, onTestFinished, test, vi } from "vitest";
import { eventually } from "../../../../../test/support/service.ts";
import { newId } from "../../ids.ts";
import { apiKey, HttpTestService, operatorToken } from "../service.fixture.ts";
import { Connections } from "./connections.ts";

const connectionsMax = 8;
let service: HttpTestService;
const sockets: Socket[] = [];
afterEach(async () => {
  vi.useRealTimers();
  for (const socket of sockets.splice(0)) socket.destroy();
  await service.close();
});

async function start(env: NodeJS.ProcessEnv = {}): Promise<void> {
  service = await new HttpTestService({ env: { PAYBELL_CONNECTIONS_MAX: String(connectionsMax), ...env } }).listen();
}

/** Connects, sends this much, and is silent from then on. */
async function open(bytes = ""): Promise<{ socket: Socket; closed: Promise<string> }> {
  const socket = connect(service.port, "127.0.0.1");
  sockets.push(socket);
  socket.on("error", () => undefined);
  let answer = "";
  socket.on("data", (data) => (answer += String(data)));
  const closed = once(socket, "close").then(() => answer);
  await once(socket, "connect");
  if (bytes !== "") socket.write(bytes);
  return { socket, closed };
}

/** By a connection of its own. */
const get = (path: string) => service.call("GET", path, { key: null, headers: { connection: "close" } });

const metric = async (name: string) => {
  const { text } = await get("/metrics");
  return text.split("\n").find((line) => line.startsWith(name));
};

const head = "POST /v1/commands HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n";
const body = JSON.stringify({ command: "LOGON", reqId: "11111111-1111-4111-8111-111111111111", tid: "T", mid: "M" });
const ownHead = `${head}Authorization: Bearer ${apiKey}\r\nConnection: close\r\n`;
const whole = `${ownHead}Content-Length: ${body.length}\r\n\r\n${body}`;

describe("callers' connections", () => {
  test("one too many closes the one that has waited longest, and is itself served", async () => {
    await start();
    const waiting: Awaited<ReturnType<typeof open>>[] = [];
    for (let count = 0; count < connectionsMax; count += 1) waiting.push(await open(count % 2 === 0 ? "" : head));
    expect((await get("/healthz")).status).toBe(200);
    expect(await waiting[0]?.closed).toBe("");
    expect(waiting.filter(({ socket }) => socket.closed)).toHaveLength(1);
    expect(await metric('paybell_http_connections_closed_total{reason="waiting"}')).toMatch(/ [12]$/);
    expect(service.logged).toContain("too many connections");
  });

  test("hundreds of callers that send a byte now and then block no other caller", async () => {
    await start();
    for (let count = 0; count < 300; count += 1) {
      await open(head);
      if (count % 50 !== 0) continue;
      const answer = await service.call("POST", "/v1/commands", {
        body,
        headers: { "content-type": "application/json", connection: "close" },
      });
      expect(answer.status).toBe(200);
    }
  });

  test("a connection with an incomplete request is closed to make room, one with a running request never", async () => {
    await start();
    const release = service.holdsNextRun();
    const answering = await open(whole);
    await release.begun;
    const halfway = await open(whole.slice(0, -1));
    for (let count = 0; count < connectionsMax; count += 1) await open();
    expect(await halfway.closed).toBe("");
    release.go();
    expect(await answering.closed).toMatch(/^HTTP\/1.1 200 /);
  });

  test("a connection whose first request is answered is not closed while its second one runs", async () => {
    await start();
    const [first, both] = [service.holdsNextRun(), await open(whole.replace("Connection: close\r\n", ""))];
    await first.begun;
    const second = service.holdsNextRun();
    both.socket.write(whole);
    await second.begun;
    first.go();
    await once(both.socket, "data");
    for (let count = 0; count < connectionsMax; count += 1) await open();
    second.go();
    expect((await both.closed).match(/HTTP\/1.1 200 /g)).toHaveLength(2);
  });

  test("if all have running requests, the new one is closed", async () => {
    await start();
    const release = service.holdsNextRun(connectionsMax);
    const all: Awaited<ReturnType<typeof open>>[] = [];
    for (let count = 0; count < connectionsMax; count += 1) all.push(await open(whole));
    await release.begun;
    expect(await (await open()).closed).toBe("");
    release.go();
    for (const { closed } of all) expect(await closed).toMatch(/^HTTP\/1.1 200 /);
    expect(await metric('paybell_http_connections_closed_total{reason="busy"}')).toMatch(/ 1$/);
  });

  test("if all are streams, one is closed, and the caller is served", async () => {
    await start();
    const line = "GET /operator/v1/overview/live HTTP/1.1\r\n";
    const stream = `${line}Host: x\r\nAuthorization: Bearer ${operatorToken}\r\n\r\n`;
    const all: Awaited<ReturnType<typeof open>>[] = [];
    for (let count = 0; count < connectionsMax; count += 1) {
      all.push(await open(stream));
      await once(all.at(-1)?.socket as Socket, "data");
    }
    expect((await get("/readyz")).status).toBe(200);
    expect(await all[0]?.closed).toMatch(/^HTTP\/1.1 200 /);
    expect(await metric('paybell_http_connections_closed_total{reason="stream"}')).toMatch(/ [12]$/);
  });

  test("a head or a body that comes too slowly is refused 408, and its connection closed", async () => {
    await start({ PAYBELL_HEADERS_TIMEOUT_MS: "100", PAYBELL_REQUEST_TIMEOUT_MS: "200" });
    const [slowHead, slowBody] = [await open(head), await open(`${head}Content-Length: 10\r\n\r\n{`)];
    expect(await slowHead.closed).toMatch(/^HTTP\/1.1 408 /);
    // Without a key it is refused by its head, and what follows is not waited for.
    expect(await slowBody.closed).toMatch(/^HTTP\/1.1 40[18] /);
  });
});

/** Asks for this path again and again, and reads nothing of the answers. */
async function readsNothing(path: string, requests: number, head = ""): Promise<Socket> {
  const socket = connect(service.port, "127.0.0.1");
  sockets.push(socket);
  socket.on("error", () => undefined).pause();
  await once(socket, "connect");
  socket.write(`GET ${path} HTTP/1.1\r\nHost: x\r\n${head}\r\n`.repeat(requests));
  return socket;
}

/** Starts a service whose guides are read: their files are made when somebody first looks. */
async function startGuides(env: NodeJS.ProcessEnv = {}): Promise<void> {
  // The readers and the metrics' reader share an address, and would wait for the next minute.
  await start({ PAYBELL_ANONYMOUS_PER_MINUTE: "1000000", ...env });
  await get("/docs/");
}

const numberOf = async (name: string) => {
  const line = await metric(name);
  return line === undefined ? undefined : Number(line.split(" ").at(-1));
};
const closedUnread = () => numberOf('paybell_http_connections_closed_total{reason="unread"}');

describe("answers that nobody reads", () => {
  test("are cut when their time is over", async () => {
    await startGuides({ PAYBELL_ANSWER_TIMEOUT_MS: "200" });
    await readsNothing("/docs/js/scalar.js", 20);
    expect(await eventually("the connection is closed", closedUnread)).toBe(1);
    expect(service.logged).toContain("an answer was not read in time");
    const unread = async () => (await numberOf("paybell_http_unread_bytes")) === 0 || undefined;
    expect(await eventually("its bytes count no more", unread)).toBe(true);
  });

  test("are closed first if there are too many connections", async () => {
    await startGuides();
    for (let count = 1; count < connectionsMax; count += 1) await readsNothing("/docs/js/scalar.js", 20);
    await eventually(
      "they are stalled",
      async () => ((await numberOf("paybell_http_unread_bytes")) ?? 0) > 0 || undefined,
    );
    const waiting = connect(service.port, "127.0.0.1");
    sockets.push(waiting);
    await once(waiting, "connect");
    for (let count = 0; count < 3; count += 1) expect((await get("/healthz")).status).toBe(200);
    expect(waiting.closed).toBe(false);
    expect(await eventually("one is cut", closedUnread)).toBeGreaterThan(0);
  });

  test("hold at most a bound of bytes, and answers that are being read are not cut", async () => {
    const bounds = { PAYBELL_UNREAD_BYTES_MAX: String(1024 * 1024), PAYBELL_CONNECTIONS_MAX: "64" };
    await startGuides({ ...bounds, PAYBELL_ANSWER_TIMEOUT_MS: "600000" });
    // 20 MB of answers are more than the operating system takes.
    for (let count = 0; count < 32; count += 1) await readsNothing("/docs/js/scalar.js", 8);
    expect(await eventually("one is cut", closedUnread)).toBeGreaterThan(0);
    const { status, text } = await service.call("GET", "/docs/js/scalar.js", { key: null });
    expect([status, text.length > 1_000_000]).toEqual([200, true]);
  });

  test("are cut of the caller that has the most, and not of one that stalled before", async () => {
    const bounds = { PAYBELL_UNREAD_BYTES_MAX: String(1024 * 1024), PAYBELL_CONNECTIONS_MAX: "64" };
    await startGuides({ ...bounds, PAYBELL_ANSWER_TIMEOUT_MS: "600000" });
    const slow = await readsNothing("/docs/js/scalar.js", 4, "Authorization: Bearer slow\r\n");
    for (let count = 0; count < 32; count += 1) {
      await readsNothing("/docs/js/scalar.js", 8, "Authorization: Bearer loud\r\n");
    }
    expect(await eventually("some are cut", closedUnread)).toBeGreaterThan(0);
    slow.resume();
    let bytes = 0;
    slow.on("data", (chunk) => (bytes += chunk.length));
    expect(await eventually("all four answers", async () => (bytes > 4_000_000 ? bytes : undefined))).toBeGreaterThan(
      0,
    );
  });

  test.each([
    ["one that is sent in pieces is not, as long as its caller reads on", Readable.from([]), false],
    ["a whole one is, however its caller reads", "text", true],
  ])("are cut when their time is over: %s", (_, payload, isCut) => {
    vi.useFakeTimers();
    const [server, hooks] = [new EventEmitter(), new Map<string, (...given: unknown[]) => void>()];
    const addHook = (name: string, hook: () => void) => hooks.set(name, hooks.get(name) ?? hook);
    const bounds = { connectionsMax: 8, answerTimeoutMs: 60_000, unreadBytesMax: 1_000_000 };
    const count = { inc: () => undefined, dec: () => undefined };
    const metrics = { connections: count, connectionsClosed: count, onRead: () => undefined };
    new Connections(bounds, { log: { warn: () => undefined }, metrics } as never).watch({ server, addHook } as never);
    const socket = Object.assign(new EventEmitter(), { destroyed: false, writableLength: 32_768, bytesWritten: 0 });
    server.emit("connection", Object.assign(socket, { destroy: () => (socket.destroyed = true) }));
    hooks.get("onSend")?.({ raw: { socket }, headers: {} }, {}, payload, () => undefined);
    for (let seconds = 0; seconds < 600; seconds += 30) {
      socket.bytesWritten += 1_000_000;
      vi.advanceTimersByTime(30_000);
    }
    expect(socket.destroyed).toBe(isCut);
    vi.advanceTimersByTime(120_000);
    expect(socket.destroyed).toBe(true);
  });

  test("are sent in pieces if they are exports, so that it is seen who reads a long page slowly", async () => {
    await start();
    const about = {
      transactionId: null,
      command: "SALE",
      callBackUrl: null,
      createdAtMs: 0,
      state: "accepted",
    } as const;
    const row = { ...about, partnerId: newId<"partner">(), id: newId<"notification">(), attempts: [] };
    service.history = [[{ ...row, content: `"${"é".repeat(100_000)}"` }]];
    const writes = vi.spyOn(ServerResponse.prototype, "write");
    onTestFinished(() => writes.mockRestore());
    const headers = { authorization: `Bearer ${operatorToken}` };
    const answer = await fetch(`http://127.0.0.1:${service.port}/operator/v1/history/2026-01-31`, { headers });
    expect(await answer.json()).toMatchObject({ id: row.id, content: "é".repeat(100_000) });
    expect(Math.max(...writes.mock.calls.map(([piece]) => piece.length))).toBe(65_536);
  });

  test("do not keep the connection of a caller that stays connected after a 408", async () => {
    await startGuides({ PAYBELL_HEADERS_TIMEOUT_MS: "100" });
    const socket = connect({ port: service.port, host: "127.0.0.1", allowHalfOpen: true });
    sockets.push(socket);
    await once(socket, "connect");
    socket.write("GET / HTTP/1.1\r\n");
    const [answer] = await once(socket, "data");
    expect(String(answer)).toMatch(/^HTTP\/1.1 408 /);
    await eventually("only this call is connected", async () =>
      (await numberOf("paybell_http_connections_in_use")) === 1 ? true : undefined,
    );
  });
});

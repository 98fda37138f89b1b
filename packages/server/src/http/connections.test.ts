import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { afterEach, describe, expect, test } from "vitest";
import { apiKey, HttpTestService, operatorToken } from "./service.fixture.ts";

const connectionsMax = 8;
let service: HttpTestService;
const sockets: Socket[] = [];
afterEach(async () => {
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

const metric = async (name: string) => {
  const { text } = await service.call("GET", "/metrics", { key: null, headers: { connection: "close" } });
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
    const answer = await service.call("GET", "/healthz", { key: null, headers: { connection: "close" } });
    expect(answer.status).toBe(200);
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
    const answer = await service.call("GET", "/readyz", { key: null, headers: { connection: "close" } });
    expect(answer.status).toBe(200);
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

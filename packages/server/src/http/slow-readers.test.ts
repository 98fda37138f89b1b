import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { afterEach, describe, expect, test } from "vitest";
import { eventually } from "../../../../test/support/service.ts";
import { HttpTestService } from "./service.fixture.ts";

const connectionsMax = 8;
let service: HttpTestService;
const sockets: Socket[] = [];
afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy();
  await service.close();
});

async function start(env: NodeJS.ProcessEnv = {}): Promise<void> {
  // The readers and the metrics' reader share an address, and would wait for the next minute.
  const limits = { PAYBELL_CONNECTIONS_MAX: String(connectionsMax), PAYBELL_ANONYMOUS_PER_MINUTE: "1000000" };
  service = await new HttpTestService({ env: { ...limits, ...env } }).listen();
  // The page's files are made when somebody first looks.
  await service.call("GET", "/docs/", { key: null, headers: { connection: "close" } });
}

/** Asks for this path again and again, and reads nothing of the answers. */
async function readsNothing(path: string, requests: number, head = ""): Promise<Socket> {
  const socket = connect(service.port, "127.0.0.1");
  sockets.push(socket);
  socket.on("error", () => undefined).pause();
  await once(socket, "connect");
  socket.write(`GET ${path} HTTP/1.1\r\nHost: x\r\n${head}\r\n`.repeat(requests));
  return socket;
}

const metric = async (name: string) => {
  const { text } = await service.call("GET", "/metrics", { key: null, headers: { connection: "close" } });
  const line = text.split("\n").find((one) => one.startsWith(name));
  return line === undefined ? undefined : Number(line.split(" ").at(-1));
};
const closedUnread = () => metric('paybell_http_connections_closed_total{reason="unread"}');

describe("answers that nobody reads", () => {
  test("are cut when their time is over", async () => {
    await start({ PAYBELL_ANSWER_TIMEOUT_MS: "200" });
    await readsNothing("/docs/js/scalar.js", 20);
    expect(await eventually("the connection is closed", closedUnread)).toBe(1);
    expect(service.logged).toContain("an answer was not read in time");
  });

  test("are closed first if there are too many connections", async () => {
    await start();
    for (let count = 1; count < connectionsMax; count += 1) await readsNothing("/docs/js/scalar.js", 20);
    await eventually(
      "they are stalled",
      async () => ((await metric("paybell_http_unread_bytes")) ?? 0) > 0 || undefined,
    );
    const waiting = connect(service.port, "127.0.0.1");
    sockets.push(waiting);
    await once(waiting, "connect");
    for (let count = 0; count < 3; count += 1) {
      const answer = await service.call("GET", "/healthz", { key: null, headers: { connection: "close" } });
      expect(answer.status).toBe(200);
    }
    expect(waiting.closed).toBe(false);
    expect(await eventually("one is cut", closedUnread)).toBeGreaterThan(0);
  });

  test("hold at most a bound of bytes, and answers that are being read are not cut", async () => {
    const bounds = { PAYBELL_UNREAD_BYTES_MAX: String(1024 * 1024), PAYBELL_CONNECTIONS_MAX: "64" };
    await start({ ...bounds, PAYBELL_ANSWER_TIMEOUT_MS: "600000" });
    // 20 MB of answers are more than the operating system takes.
    for (let count = 0; count < 32; count += 1) await readsNothing("/docs/js/scalar.js", 8);
    expect(await eventually("one is cut", closedUnread)).toBeGreaterThan(0);
    const { status, text } = await service.call("GET", "/docs/js/scalar.js", { key: null });
    expect([status, text.length > 1_000_000]).toEqual([200, true]);
  });

  test("are cut of the caller that has the most, and not of one that stalled before", async () => {
    const bounds = { PAYBELL_UNREAD_BYTES_MAX: String(1024 * 1024), PAYBELL_CONNECTIONS_MAX: "64" };
    await start({ ...bounds, PAYBELL_ANSWER_TIMEOUT_MS: "600000" });
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

  test("do not keep the connection of a caller that stays connected after a 408", async () => {
    await start({ PAYBELL_HEADERS_TIMEOUT_MS: "100" });
    const socket = connect({ port: service.port, host: "127.0.0.1", allowHalfOpen: true });
    sockets.push(socket);
    await once(socket, "connect");
    socket.write("GET / HTTP/1.1\r\n");
    const [answer] = await once(socket, "data");
    expect(String(answer)).toMatch(/^HTTP\/1.1 408 /);
    await eventually("only this call is connected", async () =>
      (await metric("paybell_http_connections_in_use")) === 1 ? true : undefined,
    );
  });
});

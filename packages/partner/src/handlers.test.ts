import { randomBytes } from "node:crypto";
import { once } from "node:events";
import {
  createServer,
  request as httpRequest,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from "node:http";
import type { AddressInfo } from "node:net";
import express from "express";
import Fastify from "fastify";
import { Hono } from "hono";
import { afterEach, describe, expect, it } from "vitest";
import { expressHandler } from "./express.ts";
import { fastifyPlugin } from "./fastify.ts";
import { fetchHandler } from "./fetch.ts";
import { honoHandler } from "./hono.ts";
import { bodyBytesMax, IpnRefused, Misused, type ReceivedIpn, type ReceiverOptions, receiver } from "./index.ts";
import { nextApi, nextRoute } from "./next.ts";
import { nodeHandler } from "./node.ts";
import { type TestDelivery, testDelivery, testEnvelope } from "./testing.ts";

const key = () => randomBytes(32).toString("base64");
const keys = (): ReceiverOptions => ({ encryptionKey: key(), signingKey: key(), webhookSecret: `whsec_${key()}` });

type OnIpn = (received: ReceivedIpn) => unknown;
type Log = (message: string, error: unknown) => void;

/** A running server with the handler at /ipn, and one where something reads the body first. */
interface Partner {
  readonly url: string;
  readonly eatenUrl: string;
}
type Start = (options: ReceiverOptions, onIpn: OnIpn, log: Log) => Promise<Partner>;

const closers: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0)) await close();
});

async function listen(server: Server): Promise<string> {
  closers.push(async () => {
    server.closeAllConnections();
    server.close();
    await once(server, "close");
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

async function readAll(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}

async function onNode(handler: (request: IncomingMessage, response: ServerResponse) => unknown): Promise<Partner> {
  const origin = await listen(
    createServer((request, response) => {
      if (request.url === "/ipn") handler(request, response);
      else void readAll(request).then(() => handler(request, response));
    }),
  );
  return { url: `${origin}/ipn`, eatenUrl: `${origin}/eaten` };
}

async function onFetch(handler: (request: Request) => Response | Promise<Response>): Promise<Partner> {
  const origin = await listen(
    createServer((request, response) => {
      void serveFetch(request, response, async (asked) => {
        if (request.url !== "/ipn") await asked.text();
        return handler(asked);
      });
    }),
  );
  return { url: `${origin}/ipn`, eatenUrl: `${origin}/eaten` };
}

const starts: Record<string, Start> = {
  nodeHandler: (options, onIpn, log) => onNode(nodeHandler(receiver(options), onIpn, { log })),
  nextApi: (options, onIpn, log) => onNode(nextApi(receiver(options), onIpn, { log })),
  fetchHandler: (options, onIpn, log) => onFetch(fetchHandler(receiver(options), onIpn, { log })),
  nextRoute: (options, onIpn, log) => onFetch(nextRoute(receiver(options), onIpn, { log })),
  honoHandler: (options, onIpn, log) =>
    onFetch(new Hono().all("*", honoHandler(receiver(options), onIpn, { log })).fetch),

  async expressHandler(options, onIpn, log) {
    const handler = expressHandler(receiver(options), onIpn, { log });
    const app = express();
    app.all("/ipn", handler);
    app.all("/eaten", express.json({ limit: "16mb" }), handler);
    const origin = await listen(createServer(app));
    return { url: `${origin}/ipn`, eatenUrl: `${origin}/eaten` };
  },

  async "expressHandler behind express.raw()"(options, onIpn, log) {
    const handler = expressHandler(receiver(options), onIpn, { log });
    const app = express();
    app.all("/eaten", express.urlencoded(), express.json({ limit: "16mb" }), handler);
    app.use(express.raw({ type: "*/*", limit: "17mb" }));
    app.all("/ipn", handler);
    const origin = await listen(createServer(app));
    return { url: `${origin}/ipn`, eatenUrl: `${origin}/eaten` };
  },

  async fastifyPlugin(options, onIpn, log) {
    const app = Fastify();
    closers.push(() => app.close());
    const plugin = fastifyPlugin(receiver(options), onIpn, { log });
    await app.register(plugin);
    await app.register((scope, _options, done) => {
      scope.addHook("preParsing", async (_request, _reply, payload) => {
        payload.resume();
        await once(payload, "end");
        return payload;
      });
      scope.register(plugin, { prefix: "/eaten" }).then(() => done(), done);
    });
    const origin = await app.listen({ host: "127.0.0.1", port: 0 });
    return { url: `${origin}/ipn`, eatenUrl: `${origin}/eaten/ipn` };
  },
};

/** Does the work of a fetch server's adapter to node:http. */
async function serveFetch(
  request: IncomingMessage,
  response: ServerResponse,
  handler: (request: Request) => Promise<Response>,
): Promise<void> {
  const method = request.method ?? "GET";
  const hasBody = method !== "GET" && method !== "HEAD";
  const headers = Object.entries(request.headers).map(([name, value]): [string, string] => [name, String(value)]);
  const body = hasBody ? { body: ReadableStream.from(request), duplex: "half" as const } : {};
  const answer = await handler(new Request(`http://localhost${request.url}`, { method, headers, ...body }));
  request.resume();
  response.writeHead(answer.status, Object.fromEntries(answer.headers));
  response.end(Buffer.from(await answer.arrayBuffer()));
}

function post(url: string, { body, headers }: TestDelivery): Promise<Response> {
  return fetch(url, { method: "POST", body, headers });
}

const problem = async (response: Response) => [response.status, await response.text()];
const notAuthentic = [400, '{"error":"not_authentic"}'];

for (const [name, start] of Object.entries(starts)) {
  describe(name, () => {
    const options = keys();
    const good = () => testDelivery(options, { kind: "card" });

    async function running(onIpn: OnIpn = () => undefined) {
      const received: ReceivedIpn[] = [];
      const told: { message: string; error: unknown }[] = [];
      const keep = (ipn: ReceivedIpn) => {
        received.push(ipn);
        return onIpn(ipn);
      };
      const partner = await start(options, keep, (message, error) => told.push({ message, error }));
      return { ...partner, received, told };
    }

    it("passes on a card IPN and a settlement IPN, under both sets of names, and answers 204", async () => {
      const { url, received, told } = await running();
      for (const wireNames of ["table", "sample"] as const) {
        const card = testDelivery(options, { kind: "card", ipn: { deviceId: "D1" } }, { wireNames });
        const settlement = testDelivery(options, { kind: "settlement" }, { wireNames });
        expect(await problem(await post(url, card))).toEqual([204, ""]);
        expect(await problem(await post(url, settlement))).toEqual([204, ""]);
      }
      expect(received.map(({ kind }) => kind)).toEqual(["card", "settlement", "card", "settlement"]);
      expect(received.map(({ ipn }) => ipn.deviceId)).toEqual(["D1", "", "D1", ""]);
      expect(told).toEqual([]);
    });

    it("answers only after your function has finished", async () => {
      const started = Promise.withResolvers<void>();
      const finish = Promise.withResolvers<void>();
      const { url } = await running(() => {
        started.resolve();
        return finish.promise;
      });
      let isAnswered = false;
      const answered = post(url, good()).then(({ status }) => {
        isAnswered = true;
        return status;
      });
      await started.promise;
      // A second request completes in the meantime, so the first one had every chance to be answered early.
      expect((await fetch(url)).status).toBe(405);
      expect(isAnswered).toBe(false);
      finish.resolve();
      expect(await answered).toBe(204);
    });

    it("answers 500 if your function throws or rejects, and logs the error", async () => {
      const { url, told } = await running((ipn) => {
        if (ipn.attempt === 1) throw new Error("the ledger is closed");
        return Promise.reject(new Error("the ledger is closed"));
      });
      for (const attempt of [1, 2]) {
        const delivery = testDelivery(options, { kind: "card" }, { attempt });
        expect(await problem(await post(url, delivery))).toEqual([500, '{"error":"not_processed"}']);
      }
      expect(told).toHaveLength(2);
      for (const { message, error } of told) {
        expect(message).toContain("delivered again");
        expect(error).toEqual(new Error("the ledger is closed"));
      }
    });

    it("answers 500 if your function returns a function: nothing was processed", async () => {
      const { url, told } = await running(() => () => undefined);
      expect(await problem(await post(url, good()))).toEqual([500, '{"error":"not_processed"}']);
      expect(told).toEqual([{ message: expect.stringContaining("threw"), error: expect.any(Misused) }]);
    });

    it("answers the same 400 to everything that is not authentic, and logs the reason", async () => {
      const other = keys();
      const old = { ...options, clock: { nowMs: () => Date.now() - 3_600_000 } };
      const { body, headers } = good();
      const twice = JSON.stringify({ deviceId: "1", device_id: "1", transaction_type: "SALE" });
      const cases: [reason: string, delivery: TestDelivery][] = [
        ["webhook_signature", { headers, body: body.replace(/.{4}"\}$/, 'AAA="}') }],
        ["webhook_signature", testDelivery(other, { kind: "card" })],
        ["decryption", testDelivery({ ...options, encryptionKey: other.encryptionKey }, { kind: "card" })],
        ["signature", testDelivery({ ...options, signingKey: other.signingKey }, { kind: "card" })],
        ["not_fresh", testDelivery(old, { kind: "card" })],
        ["missing_headers", { body, headers: { "content-type": "application/json" } }],
        ["missing_headers", { body: "", headers: {} }],
        ["two_names", testEnvelope(options, twice)],
        ["webhook_signature", { headers, body: "not even JSON" }],
      ];
      const { url, received, told } = await running();
      for (const [, delivery] of cases) expect(await problem(await post(url, delivery))).toEqual(notAuthentic);
      expect(told.map(({ error }) => (error as IpnRefused).reason)).toEqual(cases.map(([reason]) => reason));
      for (const { message, error } of told) expect(message).toContain((error as IpnRefused).hint);
      expect(received).toEqual([]);
    });

    it("reads a settlement of 5 MB", async () => {
      const settlementList = Array.from({ length: 55_000 }, (_, at) => ({
        reqId: "0f3d1a52-6a52-4d36-9d26-6d2e1c8b7a90",
        refNo: String(at).padStart(12, "0"),
      }));
      const huge = testDelivery(options, { kind: "settlement", ipn: { settlementList } });
      expect(huge.body.length).toBeGreaterThan(5_000_000);
      const { url, received } = await running();
      expect((await post(url, huge)).status).toBe(204);
      expect(received.map((ipn) => ipn.kind === "settlement" && ipn.ipn.settlementList.length)).toEqual([55_000]);
    });

    it("answers 413 over the limit, announced or not, and continues to serve", async () => {
      const { url, received, told } = await running();
      const body = "x".repeat(bodyBytesMax + 1);
      expect(await problem(await post(url, { body, headers: good().headers }))).toEqual([413, '{"error":"too_large"}']);
      expect(await chunked(url, body)).toBe(413);
      expect((await post(url, good())).status).toBe(204);
      expect(received).toHaveLength(1);
      expect(told.map(({ error }) => error instanceof IpnRefused && error.reason)).toEqual(["too_large", "too_large"]);
    });

    it("answers 405 to other methods, with the allowed one", async () => {
      const { url } = await running();
      for (const method of ["GET", "PUT", "PATCH", "DELETE"]) {
        const response = await fetch(url, { method });
        expect([response.status, response.headers.get("allow")]).toEqual([405, "POST"]);
        await response.text();
      }
      expect((await fetch(url, { method: "HEAD" })).status).toBe(405);
    });

    it("answers 500 if something has read the body first, with the remedy in the log", async () => {
      const { eatenUrl, received, told } = await running();
      expect(await problem(await post(eatenUrl, good()))).toEqual([500, '{"error":"body_already_read"}']);
      expect(told.map(({ message }) => message)).toEqual([expect.stringMatching(/before the handler did\. .{20}/)]);
      expect(received).toEqual([]);
    });

    it("answers although the log throws", async () => {
      const { url } = await start(
        options,
        () => undefined,
        () => {
          throw new Error("disk full");
        },
      );
      expect(await problem(await post(url, { body: "{}", headers: {} }))).toEqual(notAuthentic);
    });
  });
}

/** A body sent in chunks, without Content-Length. */
async function chunked(url: string, body: string): Promise<number | undefined> {
  const request = httpRequest(url, { method: "POST", agent: false });
  request.on("error", () => undefined);
  for (let at = 0; at < body.length; at += 1 << 20) request.write(body.slice(at, at + (1 << 20)));
  request.end();
  const [response] = (await once(request, "response")) as [IncomingMessage];
  response.resume();
  await once(response, "end");
  return response.statusCode;
}

describe("without a log", () => {
  it("warns of your function's error, with its stack", async () => {
    const options = keys();
    const { body, headers } = testDelivery(options, { kind: "card" });
    const handle = fetchHandler(receiver(options), () => {
      throw new Error("no stock");
    });
    const warned = once(process, "warning");
    const { status } = await handle(new Request("http://localhost/ipn", { method: "POST", body, headers }));
    expect(status).toBe(500);
    expect(await warned).toMatchObject([
      {
        name: "PaybellWarning",
        message: expect.stringContaining("your function threw"),
        detail: expect.stringMatching(/^Error: no stock\n\s+at /),
      },
    ]);
  });
});

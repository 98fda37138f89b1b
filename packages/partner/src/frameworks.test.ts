import { randomBytes } from "node:crypto";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import Fastify from "fastify";
import { Hono } from "hono";
import { afterEach, describe, expect, it } from "vitest";
import { expressHandler } from "./express.ts";
import { fastifyPlugin } from "./fastify.ts";
import { fetchHandler } from "./fetch.ts";
import { closeServers, listen as listenOn, readAll } from "./frameworks.fixture.ts";
import { honoHandler } from "./hono.ts";
import { type Misused, type ReceiverOptions, receiver } from "./index.ts";
import { nextApi, nextRoute } from "./next.ts";
import { nodeHandler } from "./node.ts";
import { type TestDelivery, testDelivery } from "./testing.ts";

const key = () => randomBytes(32).toString("base64");
const options: ReceiverOptions = { encryptionKey: key(), signingKey: key(), webhookSecret: `whsec_${key()}` };
const paybell = receiver(options);
const good = () => testDelivery(options, { kind: "card" });
const url = "http://localhost/ipn";
const request = ({ body, headers }: TestDelivery) => new Request(url, { method: "POST", body, headers });
const seen = async (response: Response) => [response.status, await response.text()];

function told() {
  const errors: unknown[] = [];
  return { errors, log: (_message: string, error: unknown) => void errors.push(error) };
}

afterEach(closeServers);

async function listen(handle: (request: IncomingMessage, response: ServerResponse) => unknown): Promise<string> {
  return `${await listenOn(createServer((incoming, response) => void handle(incoming, response)))}/ipn`;
}

describe("Hono", () => {
  const app = (read: (context: { req: { text(): unknown; json(): unknown; arrayBuffer(): unknown } }) => unknown) => {
    const { errors, log } = told();
    const hono = new Hono();
    hono.use(async (context, next) => {
      await read(context);
      await next();
    });
    hono.post(
      "/ipn",
      honoHandler(paybell, () => undefined, { log }),
    );
    return { errors, ask: async () => hono.request(url, { method: "POST", ...good() }) };
  };

  it("uses the text or the bytes that a middleware has read, because Hono keeps them unchanged", async () => {
    expect((await app(({ req }) => req.text()).ask()).status).toBe(204);
    expect((await app(({ req }) => req.arrayBuffer()).ask()).status).toBe(204);
  });

  it("names the call to change if a middleware has parsed the body", async () => {
    const { errors, ask } = app(({ req }) => req.json());
    const response = await ask();
    // Hono reads and keeps the text first, from version 4 on. Before, the log names the call to change.
    if (response.status === 204) return expect(errors).toEqual([]);
    expect(errors).toEqual([expect.objectContaining({ reason: "body_already_read" })]);
  });

  it("does the same if the request itself was read", async () => {
    const { errors, log } = told();
    const hono = new Hono();
    hono.post("/ipn", async (context) => {
      await context.req.raw.formData().catch(() => undefined);
      return honoHandler(paybell, () => undefined, { log })(context);
    });
    const response = await hono.request(url, { method: "POST", ...good() });
    expect(await seen(response)).toEqual([500, '{"error":"body_already_read"}']);
    expect((errors[0] as Misused).remedy).toMatch(/c\.req\.json\(\).*c\.req\.text\(\)/);
  });
});

describe("Express and compatible platforms", () => {
  it("answer and log a request whose body throws when it is read, as a platform's parser may do", async () => {
    const { errors, log } = told();
    const handle = expressHandler(paybell, () => undefined, { log });
    const get = () => {
      throw new Error("Invalid JSON");
    };
    const address = await listen(async (incoming, response) => {
      for await (const _ of incoming);
      handle(Object.defineProperty(incoming, "body", { get }), response);
    });
    const response = await fetch(address, { method: "POST", body: "{" });
    expect(await seen(response)).toEqual([500, '{"error":"body_already_read"}']);
    expect(errors).toEqual([expect.objectContaining({ reason: "body_already_read" })]);

    const keeping = await listen(async (incoming, response) => {
      const rawBody = await readAll(incoming);
      handle(Object.defineProperty(Object.assign(incoming, { rawBody }), "body", { get }), response);
    });
    const { body, headers } = good();
    expect((await fetch(keeping, { method: "POST", body, headers })).status).toBe(204);
  });
});

describe("Next.js", () => {
  it("names the setting to change if the Pages router has parsed the body", async () => {
    const { errors, log } = told();
    const handle = nextApi(paybell, () => undefined, { log });
    // As Next does without the setting: it reads the stream and stores the parsed body on the request.
    const address = await listen(async (incoming, response) => {
      await handle(Object.assign(incoming, { body: JSON.parse(String(await readAll(incoming))) }), response);
    });
    const { body, headers } = good();
    expect(await seen(await fetch(address, { method: "POST", body, headers }))).toEqual([
      500,
      '{"error":"body_already_read"}',
    ]);
    expect((errors[0] as Misused).message).toContain("export const config = { api: { bodyParser: false } }");
  });

  it("resolves the Pages handler only when the response was sent", async () => {
    const handled = Promise.withResolvers<boolean>();
    const handle = nextApi(paybell, () => undefined);
    const address = await listen(async (incoming, response) => {
      await handle(incoming, response);
      handled.resolve(response.writableEnded);
    });
    const { body, headers } = good();
    expect((await fetch(address, { method: "POST", body, headers })).status).toBe(204);
    expect(await handled.promise).toBe(true);
  });
});

describe("the source address", () => {
  const strict = receiver({ ...options, sourceAddresses: ["192.0.2.1"] });
  const statusOf = async (response: Response | Promise<Response>) => (await response).status;

  it("is passed by Deno and Bun, or returned by the option", async () => {
    const { log } = told();
    const handle = fetchHandler(strict, () => undefined, { log });
    const bun = (address: string) => ({ requestIP: () => ({ address, family: "IPv4", port: 4711 }) });
    expect(await statusOf(handle(request(good()), { remoteAddr: { hostname: "192.0.2.1", port: 4711 } }))).toBe(204);
    expect(await statusOf(handle(request(good()), { remoteAddr: { hostname: "192.0.2.2", port: 4711 } }))).toBe(400);
    expect(await statusOf(handle(request(good()), bun("192.0.2.1")))).toBe(204);
    expect(await statusOf(handle(request(good()), bun("192.0.2.2")))).toBe(400);
    expect(await statusOf(handle(request(good())))).toBe(400);
    const remoteAddress = (asked: Request) => asked.headers.get("x-real-ip") ?? undefined;
    const behind = fetchHandler(strict, () => undefined, { log, remoteAddress });
    const { body, headers } = good();
    const forwarded = request({ body, headers: { ...headers, "x-real-ip": "192.0.2.1" } });
    expect(await statusOf(behind(forwarded, { remoteAddr: { hostname: "10.0.0.1" } }))).toBe(204);
  });

  it("is found in what Hono's servers pass", async () => {
    const hono = new Hono();
    hono.post(
      "/ipn",
      honoHandler(strict, () => undefined, { log: () => undefined }),
    );
    const ask = (env: object) => statusOf(hono.fetch(request(good()), env));
    expect(await ask({ incoming: { socket: { remoteAddress: "192.0.2.1" } } })).toBe(204);
    expect(await ask({ server: { requestIP: () => ({ address: "192.0.2.1" }) } })).toBe(204);
    expect(await ask({ remoteAddr: { hostname: "192.0.2.1" } })).toBe(204);
    expect(await ask({ incoming: { socket: { remoteAddress: "192.0.2.2" } } })).toBe(400);
    expect(await ask({})).toBe(400);
    const behind = new Hono().post(
      "/ipn",
      honoHandler(strict, () => undefined, { remoteAddress: () => "192.0.2.1" }),
    );
    const proxy = { incoming: { socket: { remoteAddress: "10.0.0.1" } } };
    expect(await statusOf(behind.fetch(request(good()), proxy))).toBe(204);
  });

  it("is the socket's in Fastify, also where that trusts X-Forwarded-For", async () => {
    const app = Fastify({ trustProxy: true });
    await app.register(fastifyPlugin(strict, () => undefined, { log: () => undefined }));
    const { body, headers } = good();
    for (const [remoteAddress, forwarded, status] of [
      ["192.0.2.1", "192.0.2.2", 204],
      ["192.0.2.2", "192.0.2.1", 400],
    ] as const) {
      const sent = { remoteAddress, headers: { ...headers, "x-forwarded-for": forwarded }, payload: body };
      expect((await app.inject({ method: "POST", url: "/ipn", ...sent })).statusCode).toBe(status);
    }
  });

  it("is the socket's in the Pages router", async () => {
    const address = await listen(nextApi(strict, () => undefined, { log: () => undefined }));
    const local = receiver({ ...options, sourceAddresses: ["127.0.0.1"] });
    const localAddress = await listen(nextApi(local, () => undefined));
    const { body, headers } = good();
    expect(await statusOf(fetch(address, { method: "POST", body, headers }))).toBe(400);
    expect(await statusOf(fetch(localAddress, { method: "POST", body, headers }))).toBe(204);
  });
});

const makers = { nodeHandler, expressHandler, fastifyPlugin, fetchHandler, honoHandler, nextRoute, nextApi };

describe("an unknown option", () => {
  it.each(Object.entries(makers))("is refused by %s, which lists the known ones", (_, make) => {
    const logger = { logger: () => undefined } as object;
    expect(() => make(paybell, () => undefined, logger)).toThrow(
      /^The handler's option logger is not an option\..*\blog\b/,
    );
  });
});

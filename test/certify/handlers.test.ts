import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingMessage, type RequestListener, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { type ReceiverOptions, receiver } from "@paybell/partner";
import { expressHandler } from "@paybell/partner/express";
import { fastifyPlugin } from "@paybell/partner/fastify";
import { fetchHandler } from "@paybell/partner/fetch";
import express from "express";
import Fastify from "fastify";
import { afterEach, expect, it } from "vitest";
import { certify } from "../../packages/partner/src/certify/certify.ts";
import { sealerKeys } from "../../packages/partner/src/certify/notification.ts";

const key = () => randomBytes(32).toString("base64");
const keys: ReceiverOptions = { encryptionKey: key(), signingKey: key(), webhookSecret: `whsec_${key()}` };
const quiet = { log: () => undefined };
const onIpn = () => undefined;

const closers: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0)) await close();
});

async function listen(listener: RequestListener): Promise<URL> {
  const server: Server = createServer(listener);
  await once(server.listen(0, "127.0.0.1"), "listening");
  closers.push(async () => {
    const closed = once(server.close(), "close");
    server.closeAllConnections();
    await closed;
  });
  return new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}/ipn`);
}

const starts: Record<string, () => Promise<URL>> = {
  async Express() {
    const app = express();
    app.all("/ipn", expressHandler(receiver(keys), onIpn, quiet));
    return listen(app as RequestListener);
  },

  async "Express behind express.raw()"() {
    const app = express();
    app.use(express.raw({ type: "*/*", limit: "16mb" }));
    app.all("/ipn", expressHandler(receiver(keys), onIpn, quiet));
    return listen(app as RequestListener);
  },

  async Fastify() {
    const app = Fastify();
    closers.push(() => app.close());
    await app.register(fastifyPlugin(receiver(keys), onIpn, quiet));
    return new URL(`${await app.listen({ host: "127.0.0.1", port: 0 })}/ipn`);
  },

  async "servers that speak fetch"() {
    const handler = fetchHandler(receiver(keys), onIpn, quiet);
    return listen(async (request, response) => {
      const asked = await asFetch(request).catch(() => undefined);
      if (asked === undefined) return void response.destroy();
      const { status, headers, body } = await handler(asked);
      response.writeHead(status, Object.fromEntries(headers)).end(body === null ? "" : await new Response(body).text());
    });
  },
};

/** Does the work of such a server's adapter to node:http. */
async function asFetch(request: IncomingMessage): Promise<Request> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  const { method = "GET", headers } = request;
  const init = { method, headers: headers as Record<string, string> };
  const hasBody = method !== "GET" && method !== "HEAD";
  return new Request("http://localhost/ipn", hasBody ? { ...init, body: Buffer.concat(chunks) } : init);
}

it.each(Object.entries(starts))("an endpoint made with the library passes: %s", async (_name, start) => {
  const url = await start();
  const { passed, results } = await certify({
    ...{ url, keys: sealerKeys(keys), run: "0badc0de", nowMs: Date.now },
    limits: { pieces: 4, gapMs: 10 },
  });
  const failed = results
    .filter(({ verdict }) => verdict !== "passed")
    .map(({ code, finding }) => [code, finding?.code]);
  expect([passed, failed]).toEqual([true, []]);
});

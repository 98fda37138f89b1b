import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import express from "express";
import Fastify from "fastify";
import { Hono } from "hono";
import { expressHandler } from "./express.ts";
import { fastifyPlugin } from "./fastify.ts";
import { fetchHandler } from "./fetch.ts";
import { honoHandler } from "./hono.ts";
import { type ReceivedIpn, type ReceiverOptions, receiver } from "./index.ts";
import { nextApi, nextRoute } from "./next.ts";
import { nodeHandler } from "./node.ts";

export type OnIpn = (received: ReceivedIpn) => unknown;
type Log = (message: string, error: unknown) => void;

/** A running server with the handler at /ipn, and one where something reads the body first. */
interface Partner {
  readonly url: string;
  readonly eatenUrl: string;
}
type Start = (options: ReceiverOptions, onIpn: OnIpn, log: Log) => Promise<Partner>;

const closers: (() => Promise<unknown>)[] = [];

export async function closeServers(): Promise<void> {
  for (const close of closers.splice(0)) await close();
}

/** @returns its origin; `closeServers` closes it */
export async function listen(server: Server): Promise<string> {
  closers.push(async () => {
    server.closeAllConnections();
    server.close();
    await once(server, "close");
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

export async function readAll(request: IncomingMessage): Promise<Buffer> {
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
        // The sender disconnected within the body.
      }).catch(() => response.destroy());
    }),
  );
  return { url: `${origin}/ipn`, eatenUrl: `${origin}/eaten` };
}

/** Each framework, with its way of passing a request to the handler. */
export const starts: Record<string, Start> = {
  nodeHandler: (options, onIpn, log) => onNode(nodeHandler(receiver(options), onIpn, { log })),
  nextApi: (options, onIpn, log) => onNode(nextApi(receiver(options), onIpn, { log })),
  fetchHandler: (options, onIpn, log) => onFetch(fetchHandler(receiver(options), onIpn, { log })),
  nextRoute: (options, onIpn, log) => onFetch(nextRoute(receiver(options), onIpn, { log })),
  honoHandler(options, onIpn, log) {
    const app = new Hono().onError((error) => {
      throw error;
    });
    return onFetch(app.all("*", honoHandler(receiver(options), onIpn, { log })).fetch);
  },

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

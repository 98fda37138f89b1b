import type { IncomingHttpHeaders } from "node:http";
import { Readable } from "node:stream";
import { type BodyRead, checkHandler, type HandlerOptions, type OnIpn, respond } from "./exchange/exchange.ts";
import { readStream } from "./exchange/node-exchange.ts";
import type { Receiver } from "./receiver/receiver.ts";

export type { HandlerOptions, OnIpn } from "./exchange/exchange.ts";

export interface FastifyPluginOptions extends HandlerOptions {
  /** The path under the plugin's prefix; default "/ipn". */
  readonly path?: string;
}

/** The part of a Fastify instance that the plugin uses. */
export interface FastifyLike {
  removeAllContentTypeParsers(): void;
  addContentTypeParser(
    contentType: string,
    parser: (request: FastifyRequestLike, payload: Readable) => Promise<unknown>,
  ): unknown;
  all(path: string, handler: (request: FastifyRequestLike, reply: FastifyReplyLike) => Promise<unknown>): unknown;
}

export interface FastifyRequestLike {
  readonly method: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: unknown;
  readonly socket: { readonly remoteAddress?: string | undefined };
}

export interface FastifyReplyLike {
  code(status: number): unknown;
  headers(values: Record<string, string>): unknown;
  send(payload?: string): unknown;
}

/**
 * Creates a plugin for `app.register(…)`. Its body parser applies to its own route only, and Fastify's bodyLimit does
 * not apply to that: the plugin has its own limit, so that a settlement of several megabytes is accepted.
 */
export function fastifyPlugin(
  receiver: Receiver,
  onIpn: OnIpn,
  options: FastifyPluginOptions = {},
): (app: FastifyLike) => Promise<void> {
  checkHandler(receiver, onIpn, options, ["path", "log"]);
  const { path = "/ipn" } = options;
  return async (app) => {
    app.removeAllContentTypeParsers();
    app.addContentTypeParser("*", async (_request, payload) => payload);
    app.all(path, async (request, reply) => {
      const exchange = {
        method: request.method,
        headers: request.headers,
        // Not request.ip, which trustProxy derives from X-Forwarded-For.
        remoteAddress: request.socket.remoteAddress,
        readBody: () => readBody(request.body),
        alreadyReadRemedy: "A preParsing hook read it: register the plugin outside of that hook's reach.",
      };
      const { status, headers, body } = await respond(exchange, receiver, onIpn, options);
      reply.code(status);
      reply.headers({ ...headers });
      return reply.send(body === "" ? undefined : body);
    });
  };
}

async function readBody(body: unknown): Promise<BodyRead> {
  // Fastify calls no parser for a request without a body.
  if (body === undefined || body === null) return { body: "" };
  return body instanceof Readable ? readStream(body) : { failed: "already_read" };
}

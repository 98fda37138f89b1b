import { type BodyRead, checkHandler, type HandlerOptions, type OnIpn, respond } from "./exchange/exchange.ts";
import { addressFrom, readRequest, responseOf } from "./exchange/fetch-request.ts";
import type { Receiver } from "./receiver/receiver.ts";

export type { HandlerOptions, OnIpn } from "./exchange/exchange.ts";

/** The part of Hono's context that the handler uses. */
export interface HonoContextLike {
  readonly req: { readonly raw: Request; readonly bodyCache: HonoBodyCache };
  readonly env: unknown;
}

/** Hono's cache of a body that a middleware has read, by the method that read it. */
export interface HonoBodyCache {
  readonly text?: Promise<string> | string;
  readonly arrayBuffer?: Promise<ArrayBuffer> | ArrayBuffer;
}

export interface HonoHandlerOptions<C> extends HandlerOptions {
  /**
   * Returns the address of the peer, for `sourceAddresses`. It is found automatically with @hono/node-server, Bun and
   * Deno; on other platforms, return it here.
   */
  readonly remoteAddress?: (context: C) => string | undefined;
}

/** Creates a handler for `app.all("/ipn", …)`, or for `app.post`, which leaves other methods to Hono's 404. */
export function honoHandler<C extends HonoContextLike>(
  receiver: Receiver,
  onIpn: OnIpn,
  options: HonoHandlerOptions<C> = {},
): (context: C) => Promise<Response> {
  checkHandler(receiver, onIpn, options, ["log", "remoteAddress"]);
  return async (context) => {
    const { raw, bodyCache } = context.req;
    const exchange = {
      method: raw.method,
      headers: raw.headers,
      remoteAddress: options.remoteAddress?.(context) ?? addressIn(context),
      readBody: () => readBody(raw, bodyCache),
      alreadyReadRemedy:
        "A middleware called c.req.json(), c.req.parseBody() or c.req.formData(): register the handler before it, or " +
        "have it call c.req.text().",
    };
    return responseOf(await respond(exchange, receiver, onIpn, options));
  };
}

/** The text and bytes that Hono cached are the raw body. A parsed body is not. */
async function readBody(raw: Request, { arrayBuffer, text }: HonoBodyCache): Promise<BodyRead> {
  if (!raw.bodyUsed) return readRequest(raw);
  if (arrayBuffer !== undefined) return { body: new Uint8Array(await arrayBuffer) };
  return text === undefined ? { failed: "already_read" } : { body: await text };
}

interface Environment {
  /** @hono/node-server: the request of node:http. */
  readonly incoming?: { readonly socket?: { readonly remoteAddress?: string } };
  readonly server?: unknown;
}

function addressIn({ env, req }: HonoContextLike): string | undefined {
  const { incoming, server = env } = Object(env) as Environment;
  return incoming?.socket?.remoteAddress ?? addressFrom(server, req.raw);
}

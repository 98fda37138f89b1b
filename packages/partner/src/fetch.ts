import { Buffer } from "node:buffer";
import { type Answer, answer, type BodyRead, checkHandler, type HandlerOptions, type OnIpn } from "./exchange.ts";
import { bodyBytesMax } from "./options.ts";
import type { Receiver } from "./receiver.ts";

export type { HandlerOptions, OnIpn } from "./exchange.ts";

export interface FetchHandlerOptions extends HandlerOptions {
  /**
   * The address of the connection's other end, for `sourceAddresses`. A Request does not hold it. Deno and Bun pass it
   * beside the request, where it is found; elsewhere say where your platform puts it.
   */
  readonly remoteAddress?: (request: Request) => string | undefined;
}

/**
 * A handler for servers that speak fetch: Bun.serve, Deno.serve, Remix, Workers. It answers whatever path it is given.
 *
 * 204 accepted · 400 not authentic · 405 not POST · 413 longer than any IPN · 500 your function threw, or something had
 * read the body before.
 */
export function fetchHandler(
  receiver: Receiver,
  onIpn: OnIpn,
  options: FetchHandlerOptions = {},
): (request: Request, platform?: unknown) => Promise<Response> {
  checkHandler(receiver, onIpn);
  return async (request, platform) => {
    const exchange = {
      method: request.method,
      headers: request.headers,
      remoteAddress: options.remoteAddress?.(request) ?? addressFrom(platform, request),
      readBody: () => readRequest(request),
      alreadyReadRemedy:
        "Pass the request before anything calls its json() or text(), or pass a clone made before that.",
    };
    return responseOf(await answer(exchange, receiver, onIpn, options));
  };
}

export function responseOf({ status, headers, body }: Answer): Response {
  return new Response(body === "" ? null : body, { status, headers });
}

interface Platform {
  /** Deno: what its server passes beside the request. */
  readonly remoteAddr?: { readonly hostname?: string };
  /** Bun: the server itself. */
  readonly requestIP?: (request: Request) => { readonly address: string } | null;
}

/** What Deno and Bun pass beside the request says where it comes from. */
export function addressFrom(platform: unknown, request: Request): string | undefined {
  const { remoteAddr, requestIP } = Object(platform) as Platform;
  return remoteAddr?.hostname ?? requestIP?.call(platform, request)?.address;
}

export async function readRequest(request: Request): Promise<BodyRead> {
  if (request.bodyUsed || request.body?.locked === true) return { failed: "already_read" };
  if (request.body === null) return { body: "" };
  const chunks: Uint8Array[] = [];
  let byteCount = 0;
  for await (const chunk of request.body) {
    byteCount += chunk.length;
    if (byteCount > bodyBytesMax) return { failed: "too_large" };
    chunks.push(chunk);
  }
  return { body: Buffer.concat(chunks, byteCount) };
}

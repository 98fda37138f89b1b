import { checkHandler, type HandlerOptions, type OnIpn, respond } from "./exchange/exchange.ts";
import { addressFrom, readRequest, responseOf } from "./exchange/fetch-request.ts";
import type { Receiver } from "./receiver/receiver.ts";

export type { HandlerOptions, OnIpn } from "./exchange/exchange.ts";

export interface FetchHandlerOptions extends HandlerOptions {
  /**
   * Returns the address of the peer, for `sourceAddresses`. A Request does not contain it. Deno and Bun pass it next to
   * the request, where it is found; on other platforms, return it here.
   */
  readonly remoteAddress?: (request: Request) => string | undefined;
}

/**
 * Creates a handler for servers that use fetch: Bun.serve, Deno.serve, Remix, Workers. It answers on any path.
 *
 * 204 accepted · 400 not authentic · 405 not POST · 413 longer than any IPN · 500 your function threw, or something
 * read the body before.
 */
export function fetchHandler(
  receiver: Receiver,
  onIpn: OnIpn,
  options: FetchHandlerOptions = {},
): (request: Request, platform?: unknown) => Promise<Response> {
  checkHandler(receiver, onIpn, options, ["log", "remoteAddress"]);
  return async (request, platform) => {
    const exchange = {
      method: request.method,
      headers: request.headers,
      remoteAddress: options.remoteAddress?.(request) ?? addressFrom(platform, request),
      readBody: () => readRequest(request),
      alreadyReadRemedy:
        "Pass the request before anything calls its json() or text(), or pass a clone made before that.",
    };
    return responseOf(await respond(exchange, receiver, onIpn, options));
  };
}

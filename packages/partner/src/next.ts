import type { IncomingMessage, ServerResponse } from "node:http";
import type { HandlerOptions, OnIpn } from "./exchange/exchange.ts";
import { nodeExchange } from "./exchange/node-exchange.ts";
import { type FetchHandlerOptions, fetchHandler } from "./fetch.ts";
import type { Receiver } from "./receiver/receiver.ts";

export type { HandlerOptions, OnIpn } from "./exchange/exchange.ts";
export type { FetchHandlerOptions } from "./fetch.ts";

/**
 * The App router, in `app/ipn/route.ts`: `export const POST = nextRoute(paybell, onIpn)`. It needs node:crypto: no
 * `runtime = "edge"` in that file. For `sourceAddresses` say where your platform puts the address (`remoteAddress`).
 */
export function nextRoute(
  receiver: Receiver,
  onIpn: OnIpn,
  options: FetchHandlerOptions = {},
): (request: Request) => Promise<Response> {
  const handle = fetchHandler(receiver, onIpn, options);
  // Next passes the route's parameters as well, which the handler does not use.
  return (request) => handle(request);
}

/**
 * The Pages router, in `pages/api/ipn.ts`: `export default nextApi(paybell, onIpn)`, and in the same file, literally,
 * `export const config = { api: { bodyParser: false } }`; otherwise Next parses the body first.
 */
export function nextApi(
  receiver: Receiver,
  onIpn: OnIpn,
  options: HandlerOptions = {},
): (request: IncomingMessage, response: ServerResponse) => Promise<void> {
  const remedy =
    "Next parsed it: export const config = { api: { bodyParser: false } } from the file of this API route.";
  return nodeExchange(receiver, onIpn, options, remedy);
}

import type { IncomingMessage, ServerResponse } from "node:http";
import type { HandlerOptions, OnIpn } from "./exchange/exchange.ts";
import { nodeExchange } from "./exchange/node-exchange.ts";
import type { Receiver } from "./receiver/receiver.ts";

export type { HandlerOptions, OnIpn } from "./exchange/exchange.ts";

/** Creates a request listener for node:http and node:https. It answers on any path, as `fetchHandler` does. */
export function nodeHandler(
  receiver: Receiver,
  onIpn: OnIpn,
  options: HandlerOptions = {},
): (request: IncomingMessage, response: ServerResponse) => void {
  return nodeExchange(receiver, onIpn, options, "Call the handler before anything else reads the request.");
}

import type { IncomingMessage, ServerResponse } from "node:http";
import type { BodyRead, HandlerOptions, OnIpn } from "./exchange/exchange.ts";
import { nodeExchange, readStream } from "./exchange/node-exchange.ts";
import type { Receiver } from "./receiver/receiver.ts";

export type { HandlerOptions, OnIpn } from "./exchange/exchange.ts";

/** The request of Express (4 and 5) and compatible frameworks. */
export interface ExpressRequest extends IncomingMessage {
  body?: unknown;
  /** Some platforms keep the raw bytes here when they parse the body. */
  rawBody?: unknown;
}

/**
 * A handler for `app.post("/ipn", …)`, or `app.all` to answer other methods with 405. It reads the body itself: put it
 * before `express.json()`, or put `express.raw({ type: "*\/*", limit: "16mb" })` before it.
 */
export function expressHandler(
  receiver: Receiver,
  onIpn: OnIpn,
  options: HandlerOptions = {},
): (request: ExpressRequest, response: ServerResponse) => void {
  const remedy =
    "Put the handler before express.json() and other body parsers, or before the handler " +
    'express.raw({ type: "*/*", limit: "16mb" }).';
  return nodeExchange(receiver, onIpn, options, remedy, readBody);
}

/** Bytes or a string left by a raw parser are as good as the stream. A parsed object is not. */
async function readBody(request: ExpressRequest): Promise<BodyRead> {
  for (const name of ["rawBody", "body"] as const) {
    const body = leftIn(request, name);
    if (body instanceof Uint8Array || typeof body === "string") return { body };
  }
  return readStream(request);
}

/** A platform may parse the body when it is first read, and throw then. */
function leftIn(request: ExpressRequest, name: "rawBody" | "body"): unknown {
  try {
    return request[name];
  } catch {
    return undefined;
  }
}

import type { IncomingMessage, ServerResponse } from "node:http";
import { checkHandler, type HandlerOptions, type OnIpn, respond } from "./exchange.ts";
import { answerThrough } from "./node-answer.ts";
import { readStream } from "./read-stream.ts";
import type { Receiver } from "./receiver.ts";

export type { HandlerOptions, OnIpn } from "./exchange.ts";

/** Creates a request listener for node:http and node:https. It answers on any path, as `fetchHandler` does. */
export function nodeHandler(
  receiver: Receiver,
  onIpn: OnIpn,
  options: HandlerOptions = {},
): (request: IncomingMessage, response: ServerResponse) => void {
  checkHandler(receiver, onIpn, options);
  return (request, response) => {
    const exchange = {
      method: request.method ?? "",
      headers: request.headers,
      remoteAddress: request.socket.remoteAddress,
      readBody: () => readStream(request),
      alreadyReadRemedy: "Call the handler before anything else reads the request.",
    };
    void answerThrough(response, respond(exchange, receiver, onIpn, options));
  };
}

import type { IncomingMessage, ServerResponse } from "node:http";
import type { Readable } from "node:stream";
import { bodyBytesMax } from "../receiver/options.ts";
import type { Receiver } from "../receiver/receiver.ts";
import {
  type BodyRead,
  checkHandler,
  type HandlerOptions,
  type HandlerResponse,
  type OnIpn,
  respond,
} from "./exchange.ts";

/**
 * A handler for the requests of node:http, also as frameworks extend them. Its promise is never rejected.
 *
 * @param readBody default: from the request's stream
 */
export function nodeExchange<Request extends IncomingMessage>(
  receiver: Receiver,
  onIpn: OnIpn,
  options: HandlerOptions,
  alreadyReadRemedy: string,
  readBody: (request: Request) => Promise<BodyRead> = readStream,
): (request: Request, response: ServerResponse) => Promise<void> {
  checkHandler(receiver, onIpn, options);
  return (request, response) => {
    const { method = "", headers, socket } = request;
    const { remoteAddress } = socket;
    const exchange = { method, headers, remoteAddress, readBody: () => readBody(request), alreadyReadRemedy };
    return answerThrough(response, respond(exchange, receiver, onIpn, options));
  };
}

/** Sends the response, or closes the connection if the sender disconnected and there is none. Never rejects. */
function answerThrough(response: ServerResponse, answered: Promise<HandlerResponse>): Promise<void> {
  return answered.then(
    ({ status, headers, body }) => {
      // Something else, such as a framework's own timeout, may have responded in the meantime.
      if (response.headersSent) return;
      response.writeHead(status, body === "" ? headers : { ...headers, "content-length": Buffer.byteLength(body) });
      response.end(body);
    },
    () => {
      response.destroy();
    },
  );
}

/**
 * Reads a request's body to its end, or to the limit. The rest is discarded, so that the sender can read the response;
 * after the same amount again the connection is closed.
 */
export function readStream(stream: Readable): Promise<BodyRead> {
  if (stream.readableDidRead || stream.readableEnded) return Promise.resolve({ failed: "already_read" });
  if (stream.destroyed) return Promise.reject(new Error("The sender went away before the body was read."));
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let byteCount = 0;
    stream.on("data", (given: Buffer | string) => {
      // Text, if something called setEncoding.
      const chunk = typeof given === "string" ? Buffer.from(given, stream.readableEncoding ?? "utf8") : given;
      byteCount += chunk.length;
      if (byteCount <= bodyBytesMax) chunks.push(chunk);
      else if (byteCount <= 2 * bodyBytesMax) tooLarge();
      else stream.destroy();
    });
    stream.on("end", () => resolve({ body: chunks.length === 1 && chunks[0] ? chunks[0] : Buffer.concat(chunks) }));
    stream.on("error", reject);
    stream.on("close", () => reject(new Error("The sender went away before the end of the body.")));

    function tooLarge(): void {
      chunks.length = 0;
      resolve({ failed: "too_large" });
    }
  });
}

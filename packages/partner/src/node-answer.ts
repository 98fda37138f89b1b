import type { ServerResponse } from "node:http";
import type { HandlerResponse } from "./exchange.ts";

/** Sends the response, or closes the connection if the sender disconnected and there is none. Never rejects. */
export function answerThrough(response: ServerResponse, answered: Promise<HandlerResponse>): Promise<void> {
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

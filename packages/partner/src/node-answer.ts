import type { ServerResponse } from "node:http";
import type { HandlerResponse } from "./exchange.ts";

/** Sends the answer, or ends the connection when the sender went away and there is none. Never rejects. */
export function answerThrough(response: ServerResponse, answered: Promise<HandlerResponse>): Promise<void> {
  return answered.then(
    ({ status, headers, body }) => {
      // Something else, such as a framework's own time-out, may have answered in the meantime.
      if (response.headersSent) return;
      response.writeHead(status, body === "" ? headers : { ...headers, "content-length": Buffer.byteLength(body) });
      response.end(body);
    },
    () => {
      response.destroy();
    },
  );
}

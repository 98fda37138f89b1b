import type { Socket } from "node:net";
import { TransportFailure } from "./failure.ts";

/** All bytes of a response until its head is complete, including interim responses. */
const headBytesMax = 64 * 1_024;

/**
 * Counts the raw bytes of a socket until the response's head is complete. The client library bounds the headers, but
 * not the status line: measured, 32 receivers with an endless one made everybody's callbacks 80 times slower.
 */
export class ResponseHeadLimit {
  #bytes = 0;
  #complete = true;

  /** Must be called before anything else listens to the socket. */
  watch(socket: Socket): void {
    this.#complete = true;
    // The bytes before this chunk did not complete the head; this chunk may, and may contain part of the body.
    socket.on("readable", () => {
      if (this.#complete) return;
      if (this.#bytes > headBytesMax) socket.destroy(tooLong());
      this.#bytes += socket.readableLength;
    });
  }

  begin(): void {
    this.#bytes = 0;
    this.#complete = false;
  }

  complete(): void {
    this.#complete = true;
  }
}

function tooLong(): TransportFailure {
  return new TransportFailure("bad_response", `The answer's head is longer than ${headBytesMax / 1_024} KiB.`);
}

import type { Socket } from "node:net";
import { TransportFailure } from "./failure.ts";

/** All bytes of a response until its head is complete, including interim responses. */
const headBytesMax = 64 * 1_024;
const statusBytes = "HTTP/1.1 100".length;
const digits = { zero: 0x30, two: 0x32 } as const;

/**
 * The raw bytes of a response until its head is complete.
 *
 * It counts them. The client library bounds the headers, but not the status line: measured, 32 receivers with an
 * endless one made everybody's callbacks 80 times slower.
 *
 * It reads 100 as 102. A server may send `100 Continue` to a request that did not ask for it (RFC 9110, 15.2), and the
 * library takes it for an error, but passes over other interim responses.
 */
export class ResponseHead {
  #bytes = 0;
  #complete = true;
  /** The status line as far as it decides: of the final response, or of the interim one that is being read. */
  #status = "";
  /** The last bytes of an interim response. */
  #end = "";

  /** Must be called before anything else listens to the socket. */
  watch(socket: Socket): void {
    this.#complete = true;
    // The bytes before this chunk did not complete the head; this chunk may, and may contain part of the body.
    socket.on("readable", () => {
      if (this.#complete) return;
      if (this.#bytes > headBytesMax) socket.destroy(tooLong());
      this.#bytes += socket.readableLength;
    });
    const read = socket.read.bind(socket);
    socket.read = (size?: number) => {
      const chunk: Buffer | null = read(size);
      if (chunk !== null && !this.#complete) this.#acceptContinue(chunk);
      return chunk;
    };
  }

  begin(): void {
    this.#bytes = 0;
    this.#complete = false;
    this.#status = "";
    this.#end = "";
  }

  complete(): void {
    this.#complete = true;
  }

  /** A chunk may end anywhere, and contain several responses. */
  #acceptContinue(chunk: Buffer): void {
    for (let at = 0; at < chunk.length; at += 1) {
      if (this.#status.length < statusBytes) {
        const isContinue = this.#status === "HTTP/1.1 10" && chunk[at] === digits.zero;
        if (isContinue) chunk[at] = digits.two;
        this.#status += String.fromCharCode(chunk[at] ?? 0);
      } else if (this.#status[statusBytes - 3] !== "1") return;
      else {
        this.#end = this.#end.slice(-3) + String.fromCharCode(chunk[at] ?? 0);
        if (this.#end === "\r\n\r\n") this.#status = "";
      }
    }
  }
}

function tooLong(): TransportFailure {
  return new TransportFailure("bad_response", `The answer's head is longer than ${headBytesMax / 1_024} KiB.`);
}

import type { Readable } from "node:stream";
import type { BodyRead } from "./exchange.ts";
import { bodyBytesMax } from "./options.ts";

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

import { Buffer } from "node:buffer";
import { bodyBytesMax } from "../receiver/options.ts";
import type { BodyRead, HandlerResponse } from "./exchange.ts";

export function responseOf({ status, headers, body }: HandlerResponse): Response {
  return new Response(body === "" ? null : body, { status, headers });
}

interface Platform {
  /** Deno: passed by its server next to the request. */
  readonly remoteAddr?: { readonly hostname?: string };
  /** Bun: the server itself. */
  readonly requestIP?: (request: Request) => { readonly address: string } | null;
}

/** Returns the client's address from what Deno and Bun pass next to the request. */
export function addressFrom(platform: unknown, request: Request): string | undefined {
  const { remoteAddr, requestIP } = Object(platform) as Platform;
  return remoteAddr?.hostname ?? requestIP?.call(platform, request)?.address;
}

export async function readRequest(request: Request): Promise<BodyRead> {
  if (request.bodyUsed || request.body?.locked === true) return { failed: "already_read" };
  if (request.body === null) return { body: "" };
  const chunks: Uint8Array[] = [];
  let byteCount = 0;
  for await (const chunk of request.body) {
    byteCount += chunk.length;
    if (byteCount > bodyBytesMax) return { failed: "too_large" };
    chunks.push(chunk);
  }
  return { body: Buffer.concat(chunks, byteCount) };
}

import { answer, type BodyRead, type HandlerOptions, type OnIpn } from "./exchange.ts";
import { bodyBytesMax } from "./options.ts";
import type { Receiver } from "./receiver.ts";

export type { HandlerOptions, OnIpn } from "./exchange.ts";

/**
 * A handler for servers that speak fetch: Hono, Next.js route handlers, Remix, Bun, Deno. It answers whatever path it
 * is given.
 */
export function fetchHandler(
  receiver: Receiver,
  onIpn: OnIpn,
  options: HandlerOptions = {},
): (request: Request) => Promise<Response> {
  return async (request) => {
    const exchange = {
      method: request.method,
      headers: request.headers,
      readBody: () => readBody(request),
      alreadyReadRemedy:
        "Pass the request before anything calls its json() or text(), or pass a clone made before that.",
    };
    const { status, headers, body } = await answer(exchange, receiver, onIpn, options);
    return new Response(body === "" ? null : body, { status, headers });
  };
}

async function readBody(request: Request): Promise<BodyRead> {
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

import type { IncomingMessage } from "node:http";
import { AddressBlocks } from "../partners/address-blocks.ts";

/** Browsers take no answer for another type than it says. */
export const noSniff = { "x-content-type-options": "nosniff" } as const;
/** Two years, as browsers' preload lists want it. */
const strictTransport = { ...noSniff, "strict-transport-security": "max-age=63072000" } as const;

/**
 * The headers of every answer. TLS is terminated by a proxy, so whether a request came over TLS is what a trusted proxy
 * says: over plain HTTP the second header must not be sent (RFC 6797, 7.2).
 */
export function securityHeaders(
  trustedProxies: readonly string[],
): (request: IncomingMessage) => typeof noSniff | typeof strictTransport {
  const trusted = new AddressBlocks(trustedProxies);
  return ({ headers, socket: { remoteAddress } }) => {
    const isTls = headers["x-forwarded-proto"] === "https" && remoteAddress !== undefined;
    return isTls && trusted.contains(remoteAddress) ? strictTransport : noSniff;
  };
}

import type { IncomingMessage } from "node:http";
import { isIP } from "node:net";
import { AddressBlocks } from "../partners/address-blocks.ts";

/** The callers of a listener. In production operators have their own; in the sandbox there is one for all. */
export type HttpListener = "all" | "partners" | "operators";

/** The address of the caller; undefined if a trusted proxy did not name it. */
export type CallerAddress = (request: IncomingMessage) => string | undefined;

/**
 * Without trusted proxies, the caller is the peer. A trusted proxy's X-Forwarded-For is read from its end, where
 * proxies append: the first address that is not a trusted proxy is the caller. Anybody may have written the entries
 * before it.
 */
export function callerAddress(trustedProxies: readonly string[]): CallerAddress {
  const trusted = new AddressBlocks(trustedProxies);
  return (request) => {
    const peer = request.socket.remoteAddress;
    if (peer === undefined || trustedProxies.length === 0 || !trusted.contains(peer)) return peer;
    const header = request.headers["x-forwarded-for"];
    const hops = (Array.isArray(header) ? header.join(",") : (header ?? "")).split(",").map((hop) => hop.trim());
    const caller = hops.findLast((hop) => !trusted.contains(hop));
    return caller !== undefined && isIP(caller) !== 0 ? caller : undefined;
  };
}

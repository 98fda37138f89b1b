import type { IncomingMessage } from "node:http";
import { isIP } from "node:net";
import { AddressBlocks } from "../partners/address-blocks.ts";

/** The callers of a listener. In production operators have their own; in the sandbox there is one for all. */
export type HttpListener = "all" | "partners" | "operators";

/** The address of the caller; undefined if a trusted proxy did not name it. */
export type CallerAddress = (request: IncomingMessage) => string | undefined;

/** Why a caller is refused that is not in this list, in words. */
export function notAmong(list: string, address: string | undefined): string {
  if (address !== undefined) return `${address} is not among ${list}.`;
  return "The request comes from a proxy of PAYBELL_TRUSTED_PROXIES, which named no caller in X-Forwarded-For.";
}

/**
 * Without trusted proxies, the caller is the peer. A trusted proxy's X-Forwarded-For is read from its end, where
 * proxies append: the first address that is not a trusted proxy is the caller. Anybody may have written the entries
 * before it. If each entry is a trusted proxy, the caller is a program of the first one's machine. Without the header,
 * a trusted peer of this machine is the caller itself: a command, Prometheus, a probe.
 */
export function callerAddress(trustedProxies: readonly string[]): CallerAddress {
  const trusted = new AddressBlocks(trustedProxies);
  return ({ socket: { remoteAddress: peer }, headers }) => {
    if (peer === undefined || trustedProxies.length === 0 || !trusted.contains(peer)) return peer;
    const header = headers["x-forwarded-for"];
    if (header === undefined) return thisMachine.contains(peer) ? peer : undefined;
    const hops = (Array.isArray(header) ? header.join(",") : header).split(",").map((hop) => hop.trim());
    const caller = hops.findLast((hop) => !trusted.contains(hop)) ?? hops[0];
    return caller !== undefined && isIP(caller) !== 0 ? caller : undefined;
  };
}

const thisMachine = new AddressBlocks(["127.0.0.0/8", "::1"]);

import type { IncomingMessage } from "node:http";
import { isIP } from "node:net";
import type { FastifyRequest } from "fastify";
import type { Config } from "../config/config.ts";
import { ServiceError } from "../errors.ts";
import { AddressBlocks } from "../partners/settings/address-blocks.ts";

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
    const hops = (Array.isArray(header) ? header.join(",") : header).split(",").map((hop) => withoutPort(hop.trim()));
    const caller = hops.findLast((hop) => !trusted.contains(hop)) ?? hops[0];
    return caller !== undefined && isIP(caller) !== 0 ? caller : undefined;
  };
}

/** Some proxies, such as Azure's, append the caller's port: 192.0.2.7:51234, [2001:db8::7]:51234. */
function withoutPort(hop: string): string {
  return hop.replace(/^(?:\[([\da-f:.]+)\]|([\d.]+)):\d{1,5}$/i, "$1$2");
}

const thisMachine = new AddressBlocks(["127.0.0.0/8", "::1"]);

/** Before any token is checked: a caller that cannot be an operator learns nothing, not even health and metrics. */
export function operatorAddressesOnly(
  config: Pick<Config, "operatorAddresses" | "trustedProxies">,
): (request: FastifyRequest) => Promise<void> {
  const allowed = new AddressBlocks(config.operatorAddresses);
  const addressOf = callerAddress(config.trustedProxies);
  return async ({ raw }) => {
    const address = addressOf(raw);
    if (address !== undefined && allowed.contains(address)) return;
    throw new ServiceError("address_not_allowed", notAmong("PAYBELL_OPERATOR_ADDRESSES", address));
  };
}

/** RFC 3986, section 2.3: letters, digits, - . _ and ~ mean the same when encoded, so encoding them is unnecessary. */
const encodedUnreserved = /%(?:3[0-9]|[46][1-9a-f]|[57][0-9a]|2[de]|5f|7e)/i;
/** Node keeps the first of two, a proxy perhaps the last. */
const once: ReadonlySet<string> = new Set(["host", "authorization"]);

/**
 * Refuses requests that a proxy in front may have read differently: it was configured to keep `/metrics` inside, and
 * `/%6detrics` is the same path for us and another one for it.
 *
 * @throws ServiceError `ambiguous_request`, rejected
 */
export async function refuseAmbiguous({ raw }: FastifyRequest): Promise<void> {
  const [path = ""] = (raw.url ?? "").split("?", 1);
  if (path.includes("%") && encodedUnreserved.test(path)) {
    throw new ServiceError("ambiguous_request", "The path has a percent-encoded character that needs no encoding.");
  }
  if (!path.startsWith("/") && path !== "*") {
    throw new ServiceError("ambiguous_request", "The request's target is not a path.");
  }
  const seen = new Set<string>();
  for (let at = 0; at < raw.rawHeaders.length; at += 2) {
    const name = raw.rawHeaders[at] ?? "";
    if (name.length !== 4 && name.length !== 13) continue;
    const known = name.toLowerCase();
    if (!once.has(known)) continue;
    if (seen.has(known)) throw new ServiceError("ambiguous_request", `The header ${known} appears twice.`);
    seen.add(known);
  }
}

/**
 * The sandbox's protection against DNS rebinding and pages of other sites: a browser sent here by a foreign name has it
 * in Host, and a foreign page in Origin.
 *
 * @throws ServiceError `host_not_allowed`.
 */
export async function localOnly(request: FastifyRequest): Promise<void> {
  const hosts = localHosts(request.socket.localPort ?? 0);
  const { host, origin } = request.headers;
  if (host === undefined || !hosts.includes(host.toLowerCase())) {
    throw new ServiceError("host_not_allowed", `The Host must be one of ${hosts.join(", ")}.`);
  }
  if (origin !== undefined && !hosts.some((known) => origin.toLowerCase() === `http://${known}`)) {
    throw new ServiceError("host_not_allowed", `The Origin must be http:// and one of ${hosts.join(", ")}.`);
  }
}

function localHosts(port: number): string[] {
  const names = ["localhost", "127.0.0.1", "[::1]"];
  return names.flatMap((name) => (port === 80 ? [name, `${name}:80`] : [`${name}:${port}`]));
}

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

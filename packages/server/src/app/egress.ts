import { Agent, fetch as fetchBy } from "undici";
import { systemClock } from "../clock.ts";
import type { Config } from "../config.ts";
import { connectorOf } from "../delivery/transport/connect.ts";
import { EgressProxy, NotConnected } from "../delivery/transport/egress-proxy.ts";
import { createResolver } from "../delivery/transport/resolve.ts";
import { callingContext } from "../delivery/transport/tls.ts";
import { messageOf } from "../errors.ts";
import { type CheckFinding, error, ok, warning } from "./check-finding.ts";

export type EgressConfig = Pick<Config, "egressProxy" | "egressProxyResolves" | "egressProxyExcept">;

const connectTimeoutMs = 5_000;

/** The forward proxy; undefined without one. */
export function egressProxyOf(config: EgressConfig, onFailure?: (detail: string) => void): EgressProxy | undefined {
  if (config.egressProxy === null) return undefined;
  return new EgressProxy({
    url: config.egressProxy,
    resolvesNames: config.egressProxyResolves === "1",
    except: config.egressProxyExcept,
    resolve: createResolver(),
    clock: systemClock,
    ...(onFailure && { onFailure }),
  });
}

/** `fetch` for hosts that the operator's settings name, through the proxy if there is one. */
export function egressFetch(config: EgressConfig): typeof fetch {
  const proxy = egressProxyOf(config);
  if (proxy === undefined) return fetch;
  const rules = { proxy, resolve: createResolver(), secureContext: callingContext(), connectTimeoutMs };
  const dispatcher = new Agent({ connect: connectorOf(rules) });
  const through = ((url: string | URL, options: object) => fetchBy(url, { ...options, dispatcher })) as typeof fetch;
  return (url, options) => {
    const { hostname } = new URL(url instanceof Request ? url.url : url);
    return (proxy.isFor(hostname.replace(/^\[|\]$/g, "")) ? through : fetch)(url, options);
  };
}

/** A name that leads nowhere (RFC 6761): each answer but 407 says that the proxy accepts this service. */
const nowhere = "paybell-check.invalid";

/** For `paybell check`. */
export async function egressProxyFindings(
  config: EgressConfig,
  timeoutMs = connectTimeoutMs,
): Promise<readonly CheckFinding[]> {
  const proxy = egressProxyOf(config);
  if (proxy === undefined) return [];
  const what = "egress proxy";
  let end: () => unknown = () => undefined;
  const timer = setTimeout(() => end(), timeoutMs);
  const failure = await proxy
    .open(nowhere, 443, (it) => {
      end = () => it.destroy();
    })
    .then(() => undefined)
    .catch((problem: unknown) => problem)
    .finally(() => clearTimeout(timer));
  end();
  if (failure instanceof NotConnected && failure.status === 407) {
    return [error(what, `${proxy.name} answers 407`, "Set the user and password in PAYBELL_EGRESS_PROXY.")];
  }
  if (failure !== undefined && !(failure instanceof NotConnected)) {
    return [error(what, `${proxy.name} cannot be used: ${messageOf(failure)}`, "Check PAYBELL_EGRESS_PROXY.")];
  }
  if (!proxy.resolvesNames) return [ok(what, `${proxy.name} is asked for addresses that were checked`)];
  return [
    warning(
      what,
      `${proxy.name} looks names up: callbackAddresses cannot be checked`,
      "Let the proxy refuse private, loopback and link-local addresses, or unset PAYBELL_EGRESS_PROXY_RESOLVES.",
    ),
  ];
}

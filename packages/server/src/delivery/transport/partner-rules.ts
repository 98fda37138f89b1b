import type { SecureContext } from "node:tls";
import type { Partner } from "../../partners/partner.ts";
import { AddressGuard } from "./address-guard.ts";
import type { ConnectRules } from "./connect.ts";
import type { EgressProxy } from "./egress-proxy.ts";
import type { Resolve } from "./resolve.ts";
import { callingContext } from "./tls.ts";

/** The partner fields that determine where its connections may go. */
export type PartnerConnectionSettings = Pick<Partner, "id" | "settings"> & {
  readonly keys?: Pick<Partner["keys"], "client">;
};

export interface ServiceConnectionSettings {
  readonly resolve: Resolve;
  /** Only the sandbox calls http:// and loopback addresses. */
  readonly sandbox: boolean;
  /** PEM certificates that are trusted in addition to the well-known CAs. */
  readonly extraCas?: readonly string[];
  readonly proxy?: EgressProxy | undefined;
  /** For name look-up, TCP and TLS together. */
  readonly connectTimeoutMs: number;
}

/** @param shared the context of partners with neither a CA nor a client certificate of their own */
export function partnerRules(
  partner: PartnerConnectionSettings,
  { resolve, connectTimeoutMs, sandbox, extraCas, proxy }: ServiceConnectionSettings,
  shared?: SecureContext,
): ConnectRules {
  const { callbackAddresses, callbackCa: onlyCa, callbackPins: pins } = partner.settings;
  const guard = new AddressGuard(callbackAddresses, { loopbackAllowed: sandbox });
  const client = partner.keys?.client;
  const isOwn = onlyCa !== null || client !== undefined;
  const secureContext = isOwn ? callingContext({ extraCas, onlyCa, client }) : (shared ?? callingContext({ extraCas }));
  return { guard, resolve, proxy, connectTimeoutMs, secureContext, pins };
}

import { webhookKey } from "@paybell/contract";
import type { Config } from "../config.ts";
import type { AlertTarget } from "../delivery/alerts.ts";
import { AddressGuard } from "../delivery/transport/guard.ts";
import { createResolver } from "../delivery/transport/resolve.ts";
import { callingContext } from "../delivery/transport/tls.ts";
import { AddressList } from "../partners/addresses.ts";

const loopback = new AddressList(["127.0.0.0/8", "::1/128"]);
const connectTimeoutMs = 5_000;

/**
 * Where alerts go, and the key that signs them; undefined when nobody is told. A private address is called only where
 * the setting names a block inside that range, and so is the machine itself.
 */
export function alertTarget(
  config: Pick<Config, "alertUrl" | "alertSecret" | "alertAddresses">,
): AlertTarget | undefined {
  const { alertUrl, alertSecret, alertAddresses } = config;
  if (alertUrl === null || alertSecret === null) return undefined;
  const loopbackAllowed = alertAddresses.some((block) => loopback.contains(block.replace(/\/.*/, "")));
  return {
    url: alertUrl,
    key: webhookKey(alertSecret),
    rules: {
      guard: new AddressGuard(alertAddresses, { loopbackAllowed }),
      resolve: createResolver(),
      secureContext: callingContext(),
      connectTimeoutMs,
    },
  };
}

import { webhookKey } from "@paybell/contract";
import type { Config } from "../config.ts";
import type { AlertTarget } from "../delivery/alerts.ts";

/** Where alerts go, and the key that signs them; undefined when nobody is told. */
export function alertTarget(config: Pick<Config, "alertUrl" | "alertSecret">): AlertTarget | undefined {
  if (config.alertUrl === null || config.alertSecret === null) return undefined;
  return { url: config.alertUrl, key: webhookKey(config.alertSecret) };
}

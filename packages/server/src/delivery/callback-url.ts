import type { Partner } from "../partners/partner.ts";
import { registeredUrl } from "../registered-url.ts";
import type { Delivery } from "./store.ts";

/** Section 4.1: the command's own URL first, then its registered one. A redelivery may request the registered one. */
export function callbackUrlOf(
  { toRegistered, callBackUrl, command }: Pick<Delivery, "toRegistered" | "callBackUrl" | "command">,
  { settings }: Pick<Partner, "settings">,
): string | null {
  return (toRegistered ? null : callBackUrl) ?? registeredUrl(settings, command);
}

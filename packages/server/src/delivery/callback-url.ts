import type { Partner } from "../partners/partner.ts";
import type { Delivery } from "./store.ts";

/** Section 4.1: the command's own URL first, then the registered one. A redelivery may request the registered one. */
export function callbackUrlOf(
  { toRegistered, callBackUrl }: Pick<Delivery, "toRegistered" | "callBackUrl">,
  { settings }: Pick<Partner, "settings">,
): string | null {
  return (toRegistered ? null : callBackUrl) ?? settings.callBackUrl;
}

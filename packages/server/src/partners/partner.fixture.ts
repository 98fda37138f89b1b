import { newId, type PartnerId } from "../ids.ts";
import { keyObject, newSecret } from "./keys.ts";
import type { Partner, PartnerSettings } from "./partner.ts";
import { completeSettings } from "./settings/settings.ts";

/** A partner's snapshot with new keys, as the directory returns it. */
export function partnerSnapshot(settings: Partial<PartnerSettings> = {}, id: PartnerId = newId()): Partner {
  const key = (kind: "encryptionKey" | "signingKey" | "webhookSecret") =>
    keyObject(kind, newId<"key">(), newSecret(kind).raw);
  return {
    id,
    state: "active",
    settings: completeSettings({
      name: "A partner",
      callbackAddresses: ["127.0.0.1/32"],
      callingAddresses: ["127.0.0.1/32"],
      ...settings,
    }),
    keys: { encryption: key("encryptionKey"), signing: key("signingKey"), webhook: [key("webhookSecret")] },
    pauses: [],
  };
}

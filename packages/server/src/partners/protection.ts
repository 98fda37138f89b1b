import { type IpnKind, signedFields } from "@paybell/contract";
import { matches, requireBlock } from "./cidr.ts";
import type { PartnerSettings } from "./settings.ts";

const kinds: readonly IpnKind[] = ["card", "settlement"];

/** Settings whose change needs an admin, and the second one where two are needed, if it lowers the protection. */
const lowers: Readonly<Record<string, (before: PartnerSettings, after: PartnerSettings) => boolean>> = {
  /** Anybody may change what this cipher encrypts, unless the receiver verifies the signature first. */
  cipher: (before, after) => after.cipher === "aes-256-cbc" && before.cipher !== after.cipher,
  signing: (before, after) =>
    kinds.some((kind) => {
      const signed = signedFields(kind, after.signing);
      return signedFields(kind, before.signing).some((field) => !signed.includes(field));
    }),
  callbackCa: (before, after) => before.callbackCa !== null && before.callbackCa !== after.callbackCa,
  // A further key is one more that may pose as the partner's server.
  callbackPins: (before, after) =>
    before.callbackPins.length > 0 &&
    (after.callbackPins.length === 0 || after.callbackPins.some((pin) => !before.callbackPins.includes(pin))),
  callingAddresses: (before, after) => {
    const open = before.callingAddresses.map(requireBlock);
    return after.callingAddresses
      .map(requireBlock)
      .some((block) => !open.some((known) => known.bits <= block.bits && matches(known, block.network)));
  },
};

/** The settings by which a change weakens what protects a partner's notifications and its API. */
export function loweredSettings(before: PartnerSettings, after: PartnerSettings): readonly string[] {
  return Object.keys(lowers).filter((setting) => lowers[setting]?.(before, after));
}

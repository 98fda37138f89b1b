import type { KeyObject } from "node:crypto";
import type { Partner, PartnerDirectory } from "../partners/partner.ts";
import type { SandboxCredentials } from "./credentials.ts";
import type { SandboxReceiver } from "./receiver.ts";

const followKeysEveryMs = 500;

/**
 * The sandbox has both sides' keys: its receiver follows every change of the partner at once, which a real one could
 * not.
 */
export function followKeys(
  directory: Pick<PartnerDirectory, "peek">,
  first: Partner,
  receiver: SandboxReceiver,
  changed: (keys: KeyTexts) => Promise<void>,
): () => void {
  let current = first;
  const timer = setInterval(() => {
    const partner = directory.peek(first.id);
    if (partner === undefined || partner === current) return;
    receiver.changeKeys(receiverKeys(partner, current));
    current = partner;
    void changed(keyTexts(partner));
  }, followKeysEveryMs);
  return () => clearInterval(timer);
}

type KeyTexts = Pick<SandboxCredentials, "encryptionKey" | "signingKey" | "webhookSecret">;

export function keyTexts({ keys }: Partner): KeyTexts {
  const [webhook] = keys.webhook;
  return {
    encryptionKey: textOf(keys.encryption.key),
    signingKey: textOf(keys.signing.key),
    webhookSecret: webhook === undefined ? "" : `whsec_${textOf(webhook.key)}`,
  };
}

/** Deliveries in flight were sealed with the previous keys. */
export function receiverKeys(partner: Partner, before: Partner = partner) {
  const { cipher, encoding, signing } = partner.settings;
  const [now, then] = [keyTexts(partner), keyTexts(before)];
  const both = (name: keyof KeyTexts) => [...new Set([now[name], then[name]])].map((key) => ({ key }));
  return {
    encryptionKey: both("encryptionKey"),
    signingKey: both("signingKey"),
    webhookSecret: both("webhookSecret"),
    cipher,
    encoding,
    signing,
    fields: [...new Set([partner.settings.fields, before.settings.fields])],
  };
}

function textOf(key: KeyObject): string {
  return key.export().toString("base64");
}

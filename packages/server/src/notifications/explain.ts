import type { IpnKind } from "@paybell/contract";
import type { Partner } from "../partners/partner.ts";
import { callbackUrlOf } from "../registered-url.ts";
import type { Seal } from "./pull.ts";
import type { NotificationContent } from "./store.ts";
import { kindOf } from "./view.ts";

/** Everything that an attempt would send now. It contains what the partner would read, and no key. */
export interface ExplainedNotification {
  readonly kind: IpnKind;
  /** Every field under its name on the wire, `signature` included. */
  readonly ipn: Readonly<Record<string, unknown>>;
  /** The signed text (section 5.1), and the version of the key. */
  readonly signed: { readonly mode: "fields" | "whole"; readonly text: string; readonly keyId: string };
  readonly cipher: string;
  readonly encoding: string;
  /** The URL it would go to; null: none is registered. */
  readonly url: string | null;
  readonly encryptionKeyId: string;
  readonly headers: Readonly<Record<string, string>>;
  /** The body as POSTed: the encrypted IPN. */
  readonly body: string;
}

export async function explain(
  content: NotificationContent,
  partner: Partner,
  seal: Seal,
): Promise<ExplainedNotification> {
  const { settings, keys } = partner;
  const url = callbackUrlOf(content, partner.settings);
  const { headers, body, wire, signedText: text } = await seal(partner, content, url ?? "");
  return {
    kind: kindOf(content.command),
    ipn: wire,
    signed: { mode: settings.signing.mode, text, keyId: keys.signing.id },
    cipher: settings.cipher,
    encoding: settings.encoding,
    url,
    encryptionKeyId: keys.encryption.id,
    headers,
    body: body.toString(),
  };
}

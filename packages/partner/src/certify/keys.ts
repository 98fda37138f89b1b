import { createSecretKey, type KeyObject, randomBytes } from "node:crypto";
import {
  defaultSealing,
  defaultSigning,
  type FieldSet,
  hmacKey,
  type Sealing,
  type SealingKey,
  type Signing,
  sealingKey,
  webhookKey,
} from "@paybell/contract";
import type { ReceiverOptions } from "../options.ts";

/** Everything a notification is sealed and signed with. */
export interface SealerKeys {
  readonly sealing: Sealing;
  readonly signing: Signing;
  readonly fields: FieldSet;
  /** The endpoint accepts the other set of fields too, while the setting changes. */
  readonly acceptsBothFields?: boolean;
  readonly encryptionKey: SealingKey;
  readonly signingKey: KeyObject;
  readonly webhookSecret: KeyObject;
}

/**
 * The keys that the service would use: the first of several versions, and of several sets of fields.
 *
 * @param options those of the endpoint's own receiver, already validated
 */
export function sealerKeys(options: ReceiverOptions): SealerKeys {
  const encryption = current(options.encryptionKey);
  const [fields = "specification", other] = [options.fields ?? []].flat();
  const { cipher = defaultSealing.cipher, encoding = defaultSealing.encoding, signing = defaultSigning } = options;
  return {
    sealing: { cipher, encoding },
    signing,
    fields,
    acceptsBothFields: other !== undefined,
    encryptionKey: sealingKey(encryption.id, Buffer.from(encryption.text, "base64")),
    signingKey: hmacKey(Buffer.from(current(options.signingKey).text, "base64")),
    webhookSecret: webhookKey(current(options.webhookSecret).text),
  };
}

/** A key that the endpoint does not know, under the id of the one it does. */
export function strangeSealingKey(id: string): SealingKey {
  return sealingKey(id, randomBytes(32));
}

export function strangeKey(): KeyObject {
  return createSecretKey(randomBytes(32));
}

function current(keys: ReceiverOptions["encryptionKey"]): { id: string; text: string } {
  if (typeof keys === "string") return { id: "", text: keys };
  return { id: keys[0]?.id ?? "", text: keys[0]?.key ?? "" };
}

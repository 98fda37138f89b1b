import { createCipheriv, createDecipheriv, type KeyObject, randomBytes } from "node:crypto";
import { NotSealedByThisKey } from "./master-key.ts";

const nonceBytes = 12;
const tagBytes = 16;
/** The stored form: version ‖ nonce[12] ‖ ciphertext ‖ tag[16], AES-256-GCM. */
const version = 1;

/** @param context the row that the value is bound to: it opens nowhere else, so a row copied elsewhere is worthless */
export function sealValue(key: KeyObject, plain: Buffer, context: string): Buffer {
  const nonce = randomBytes(nonceBytes);
  const cipher = createCipheriv("aes-256-gcm", key, nonce, { authTagLength: tagBytes });
  cipher.setAAD(Buffer.from(context));
  const ciphertext = Buffer.concat([cipher.update(plain), cipher.final()]);
  return Buffer.concat([Buffer.of(version), nonce, ciphertext, cipher.getAuthTag()]);
}

/** @throws NotSealedByThisKey if it was sealed under another key, for another context, or was changed */
export function openValue(key: KeyObject, sealed: Buffer, context: string): Buffer {
  if (sealed.length < 1 + nonceBytes + tagBytes) throw new NotSealedByThisKey("the sealed value is too short");
  if (sealed[0] !== version) throw new NotSealedByThisKey(`the sealed value has the unknown version ${sealed[0]}`);
  const nonce = sealed.subarray(1, 1 + nonceBytes);
  const decipher = createDecipheriv("aes-256-gcm", key, nonce, { authTagLength: tagBytes });
  decipher.setAAD(Buffer.from(context)).setAuthTag(sealed.subarray(-tagBytes));
  try {
    return Buffer.concat([decipher.update(sealed.subarray(1 + nonceBytes, -tagBytes)), decipher.final()]);
  } catch {
    throw new NotSealedByThisKey("the value was not sealed under this key for this place");
  }
}

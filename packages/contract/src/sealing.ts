import { isUtf8 } from "node:buffer";
import { createCipheriv, createDecipheriv, type KeyObject } from "node:crypto";
import { decodeStrictly, type Encoding } from "./encoding.ts";
import { NotAuthentic, type NotAuthenticReason } from "./errors.ts";
import { jweHeader, jweParts } from "./jwe.ts";
import { secretKey } from "./keys.ts";
import { pooledRandom } from "./pooled-random.ts";

export const ciphers = ["aes-256-gcm", "aes-256-cbc", "jwe"] as const;
/** The specification says AES-256 and no more; these are the modes a partner can have. Never ECB. */
export type Cipher = (typeof ciphers)[number];

/** How a partner's IPNs are sealed: from configuration, never from the message. */
export interface Sealing {
  readonly cipher: Cipher;
  /** Ignored for jwe, which is base64url by RFC 7516. */
  readonly encoding: Encoding;
}

export const defaultSealing: Sealing = { cipher: "aes-256-gcm", encoding: "base64" };

/** One version of an encryption key. */
export interface SealingKey {
  /** The version's public id: the JWE `kid`. */
  readonly id: string;
  readonly key: KeyObject;
}

/** @throws TypeError naming the expected length, never the value. */
export function sealingKey(id: string, raw: Buffer): SealingKey {
  return { id, key: secretKey("an encryption key", raw) };
}

const gcmIvBytes = 12;
const gcmTagBytes = 16;
const cbcIvBytes = 16;
const blockBytes = 16;
const freshBytes = pooledRandom();
const gcm = { authTagLength: gcmTagBytes } as const;

/**
 * Seals a text: section 5, rule 3.
 * aes-256-gcm: encode(iv[12] ‖ ciphertext ‖ tag[16]). aes-256-cbc: encode(iv[16] ‖ ciphertext), PKCS#7.
 * jwe: RFC 7516 compact, alg dir, enc A256GCM, kid the key's id.
 *
 * @param random fresh bytes for the IV. An IV used twice with one key breaks GCM: pass another only in a test.
 */
export function seal(
  plain: string,
  sealing: Sealing,
  key: SealingKey,
  random: (bytes: number) => Buffer = freshBytes,
): string {
  if (sealing.cipher === "jwe") return sealJwe(plain, key, random(gcmIvBytes));
  if (sealing.cipher === "aes-256-cbc") {
    const iv = random(cbcIvBytes);
    const cipher = createCipheriv("aes-256-cbc", key.key, iv);
    return Buffer.concat([iv, cipher.update(plain, "utf8"), cipher.final()]).toString(sealing.encoding);
  }
  const iv = random(gcmIvBytes);
  const cipher = createCipheriv("aes-256-gcm", key.key, iv, gcm);
  const ciphertext = cipher.update(plain, "utf8");
  cipher.final();
  return Buffer.concat([iv, ciphertext, cipher.getAuthTag()]).toString(sealing.encoding);
}

function sealJwe(plain: string, key: SealingKey, iv: Buffer): string {
  const header = jweHeader(key);
  const cipher = createCipheriv("aes-256-gcm", key.key, iv, gcm).setAAD(header.authenticated);
  const ciphertext = cipher.update(plain, "utf8");
  cipher.final();
  const tag = cipher.getAuthTag();
  return `${header.text}..${iv.toString("base64url")}.${ciphertext.toString("base64url")}.${tag.toString("base64url")}`;
}

/**
 * Opens what seal made, with the first of the keys that fits; for jwe with the one its kid names.
 *
 * @throws NotAuthentic for anything else, always alike.
 */
export function open(data: string, sealing: Sealing, keys: readonly SealingKey[]): { text: string; keyId: string } {
  const sealed = takeApart(data, sealing);
  if (typeof sealed === "string") throw new NotAuthentic(sealed);
  const candidates = keysFor(sealed, keys);
  let reason: NotAuthenticReason = candidates.length === 0 ? "unknown_key" : "decryption";
  for (const key of candidates) {
    const opened = decrypt(sealed, key);
    if ("text" in opened) return { text: opened.text, keyId: key.id };
    if (opened.refused !== "decryption") reason = opened.refused;
  }
  throw new NotAuthentic(reason);
}

/** Sealed data in its parts. `keyId` is there when the message names its key. */
export interface Sealed {
  readonly mode: "aes-256-gcm" | "aes-256-cbc";
  readonly iv: Buffer;
  readonly ciphertext: Buffer;
  readonly tag?: Buffer;
  readonly header?: string;
  readonly keyId?: string;
}

export function takeApart(data: string, sealing: Sealing): Sealed | NotAuthenticReason {
  if (typeof data !== "string") return "encoding";
  if (sealing.cipher === "jwe") {
    const parts = jweParts(data);
    return typeof parts === "string" ? parts : { mode: "aes-256-gcm", ...parts };
  }
  const bytes = decodeStrictly(data, sealing.encoding);
  if (bytes === undefined) return "encoding";
  if (sealing.cipher === "aes-256-cbc") {
    if (bytes.length < cbcIvBytes + blockBytes || bytes.length % blockBytes !== 0) return "encoding";
    return { mode: "aes-256-cbc", iv: bytes.subarray(0, cbcIvBytes), ciphertext: bytes.subarray(cbcIvBytes) };
  }
  if (bytes.length < gcmIvBytes + gcmTagBytes) return "encoding";
  return {
    mode: "aes-256-gcm",
    iv: bytes.subarray(0, gcmIvBytes),
    ciphertext: bytes.subarray(gcmIvBytes, -gcmTagBytes),
    tag: bytes.subarray(-gcmTagBytes),
  };
}

export function keysFor(sealed: Sealed, keys: readonly SealingKey[]): readonly SealingKey[] {
  return sealed.keyId === undefined ? keys : keys.filter((key) => key.id === sealed.keyId);
}

export function decrypt(
  sealed: Sealed,
  { key }: SealingKey,
): { text: string } | { refused: "decryption" | "not_text" } {
  let bytes: Buffer;
  try {
    bytes = sealed.mode === "aes-256-cbc" ? decryptCbc(sealed, key) : decryptGcm(sealed, key);
  } catch {
    return { refused: "decryption" };
  }
  return isUtf8(bytes) ? { text: bytes.toString("utf8") } : { refused: "not_text" };
}

function decryptCbc(sealed: Sealed, key: KeyObject): Buffer {
  const decipher = createDecipheriv("aes-256-cbc", key, sealed.iv);
  return Buffer.concat([decipher.update(sealed.ciphertext), decipher.final()]);
}

function decryptGcm(sealed: Sealed, key: KeyObject): Buffer {
  const decipher = createDecipheriv("aes-256-gcm", key, sealed.iv, gcm);
  if (sealed.tag === undefined) throw new TypeError("AES-GCM without a tag");
  decipher.setAuthTag(sealed.tag);
  if (sealed.header !== undefined) decipher.setAAD(Buffer.from(sealed.header, "latin1"));
  const plain = decipher.update(sealed.ciphertext);
  decipher.final();
  return plain;
}

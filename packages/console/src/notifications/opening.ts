import { FieldError } from "../api/call.ts";
import type { SealedNotification } from "../api/operations.ts";

/** Keys as the registration shows them: base64 of 32 bytes. */
const keyBytes = 32;
const gcmIvBytes = 12;
const cbcIvBytes = 16;

/** Why a notification could not be opened here. The message names neither the key nor what was decrypted. */
function notOpened(message: string): FieldError {
  return new FieldError({ key: message });
}

/**
 * Decrypts a notification in the browser, by its own cryptography: the key is sent nowhere, and kept by nobody.
 *
 * @throws FieldError of the field `key`
 */
export async function openSealed({ data, cipher, encoding }: SealedNotification, keyText: string): Promise<string> {
  const raw = bytesOf(keyText.trim(), "base64");
  if (raw === undefined || raw.length !== keyBytes) {
    throw notOpened("It is not an encryption key: base64 of 32 bytes, 44 characters.");
  }
  const isCbc = cipher === "aes-256-cbc";
  const key = await crypto.subtle.importKey("raw", raw, isCbc ? "AES-CBC" : "AES-GCM", false, ["decrypt"]);
  const parts = partsOf(data, cipher, encoding);
  if (parts === undefined) throw notOpened("What the service sent is not encrypted as agreed.");
  const { iv, ciphertext, authenticated } = parts;
  const how = isCbc
    ? { name: "AES-CBC", iv }
    : { name: "AES-GCM", iv, ...(authenticated && { additionalData: authenticated }) };
  try {
    const plain = await crypto.subtle.decrypt(how, key, ciphertext);
    return new TextDecoder("utf-8", { fatal: true }).decode(plain);
  } catch {
    throw notOpened("This key does not open it: it is of another version, or another partner's.");
  }
}

interface Parts {
  readonly iv: Uint8Array<ArrayBuffer>;
  /** With GCM's tag at its end, as browsers take it. */
  readonly ciphertext: Uint8Array<ArrayBuffer>;
  readonly authenticated?: Uint8Array<ArrayBuffer>;
}

function partsOf(data: string, cipher: string, encoding: string): Parts | undefined {
  if (cipher !== "jwe") {
    const bytes = bytesOf(data, encoding);
    const ivBytes = cipher === "aes-256-cbc" ? cbcIvBytes : gcmIvBytes;
    return bytes && { iv: bytes.slice(0, ivBytes), ciphertext: bytes.slice(ivBytes) };
  }
  const [header = "", , ...rest] = data.split(".");
  const [iv, ciphertext, tag] = rest.map((part) => bytesOf(part, "base64url"));
  if (iv === undefined || ciphertext === undefined || tag === undefined) return undefined;
  return {
    iv,
    ciphertext: new Uint8Array([...ciphertext, ...tag]),
    authenticated: new TextEncoder().encode(header),
  };
}

/** Undefined for what is not in this encoding. */
function bytesOf(text: string, encoding: string): Uint8Array<ArrayBuffer> | undefined {
  if (encoding === "hex") {
    return /^(?:[0-9a-f]{2})+$/i.test(text)
      ? Uint8Array.from(text.match(/../g) ?? [], (pair) => Number.parseInt(pair, 16))
      : undefined;
  }
  try {
    const binary = atob(text.replaceAll("-", "+").replaceAll("_", "/"));
    return Uint8Array.from(binary, (character) => character.charCodeAt(0));
  } catch {
    return undefined;
  }
}

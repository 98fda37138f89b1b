import { decodeStrictly } from "./encoding.ts";
import { parseStrictly } from "./strict-json.ts";

export interface JweParts {
  /** The protected header as received: the tag authenticates it together with the content. */
  readonly header: string;
  readonly keyId: string;
  readonly iv: Buffer;
  readonly ciphertext: Buffer;
  readonly tag: Buffer;
}

/**
 * Splits a compact JWE as we seal it, or returns the reason for refusing it. Its header selects one of our keys,
 * nothing else.
 */
export function jweParts(data: string): JweParts | "encoding" | "jwe_header" {
  const [header = "", encryptedKey, iv64 = "", ciphertext64 = "", tag64 = "", ...rest] = data.split(".", 6);
  const iv = decodeStrictly(iv64, "base64url");
  const ciphertext = decodeStrictly(ciphertext64, "base64url");
  const tag = decodeStrictly(tag64, "base64url");
  // With "dir" there is no encrypted key: RFC 7518, section 4.5.
  if (encryptedKey !== "" || rest.length > 0) return "encoding";
  if (iv?.length !== 12 || tag?.length !== 16 || ciphertext === undefined) return "encoding";
  const keyId = acceptableKeyId(header);
  return keyId === undefined ? "jwe_header" : { header, keyId, iv, ciphertext, tag };
}

function acceptableKeyId(header64: string): string | undefined {
  const bytes = decodeStrictly(header64, "base64url");
  if (bytes === undefined) return undefined;
  const parsed = parseStrictly(bytes.toString("utf8"));
  if ("refused" in parsed || typeof parsed.value !== "object" || parsed.value === null) return undefined;
  const { alg, enc, kid, zip, crit } = parsed.value as Record<string, unknown>;
  // Compression before encryption leaks content by its length. An extension that we do not know must be refused.
  if (alg !== "dir" || enc !== "A256GCM" || zip !== undefined || crit !== undefined) return undefined;
  return typeof kid === "string" ? kid : undefined;
}

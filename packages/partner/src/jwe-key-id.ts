import { Buffer } from "node:buffer";
import { parseJson, type SealingKey } from "@paybell/contract/receiving";

/** The kid in the message. Whether it belongs to a valid JWE header is found out by opening it. */
export function jweKeyId(body: string): string {
  const header = /"data"\s*:\s*"([A-Za-z0-9_-]{1,1024})\./.exec(body)?.[1];
  if (header === undefined) return "";
  try {
    const { kid } = Object(parseJson(Buffer.from(header, "base64url").toString("utf8"))) as { kid?: unknown };
    return typeof kid === "string" ? kid : "";
  } catch {
    return "";
  }
}

/** A JWE names its key. A key that was configured without an id is tried for any name. */
export function namedAsIn(body: string, keys: readonly SealingKey[]): readonly SealingKey[] {
  if (keys.every(({ id }) => id !== "")) return keys;
  const named = jweKeyId(body);
  return keys.map((version) => (version.id === "" ? { id: named, key: version.key } : version));
}

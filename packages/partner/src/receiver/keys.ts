import { Buffer } from "node:buffer";
import type { KeyObject } from "node:crypto";
import { hmacKey, parseJson, type SealingKey, sealingKey, webhookKey } from "@paybell/contract/receiving";
import { Misused, type MisusedReason } from "../errors/misused.ts";

/** One version of a key during a rotation. */
export interface VersionedKey {
  /** As the rotation returned it: the JWE `kid`, or paybell-key. */
  readonly id?: string;
  /** Base64 of 32 bytes; for webhookSecret `whsec_` and the same. */
  readonly key: string;
}

/** One key, or all valid versions during a rotation. */
export type Keys = string | readonly VersionedKey[];

type Option = "encryptionKey" | "signingKey" | "webhookSecret";

/** A key without an id has the empty id. */
export function encryptionKeys(keys: Keys): readonly SealingKey[] {
  return versions("encryptionKey", keys).map(({ id, text, where }) => sealingKey(id, bytes(where, text)));
}

export function signingKeys(keys: Keys): readonly KeyObject[] {
  return versions("signingKey", keys).map(({ text, where }) => hmacKey(bytes(where, text)));
}

const prefix = "whsec_";

export function webhookKeys(keys: Keys): readonly KeyObject[] {
  return versions("webhookSecret", keys).map(({ text, where }) => {
    refuse(where, [
      [text === "", "empty_key"],
      [text.trim() !== text, "white_space_in_key"],
      [!text.startsWith(prefix), "no_whsec_prefix"],
      [text.startsWith(prefix, prefix.length), "two_whsec_prefixes"],
    ]);
    bytes(where, text.slice(prefix.length));
    return webhookKey(text);
  });
}

/** A key used for two purposes weakens both. Usually it is one environment variable pasted twice. */
export function refuseSharedKeys(given: Readonly<Record<Option, Keys>>): void {
  const seen = new Map<string, string>();
  for (const option of ["encryptionKey", "signingKey", "webhookSecret"] as const) {
    for (const { text, where } of versions(option, given[option])) {
      const bare = text.startsWith(prefix) ? text.slice(prefix.length) : text;
      const twin = seen.get(bare);
      if (twin !== undefined) throw new Misused("shared_key", where, { meaning: `is the same key as ${twin}` });
      seen.set(bare, where);
    }
  }
}

interface Version {
  readonly id: string;
  readonly text: string;
  /** The name of the key in an error. */
  readonly where: string;
}

function versions(option: Option, keys: unknown): readonly Version[] {
  if (typeof keys === "string") return [{ id: "", text: keys, where: option }];
  const list = keys as readonly unknown[];
  refuse(option, [
    [keys === undefined || keys === null, "missing_key"],
    [keys instanceof Promise, "missing_await"],
    [!Array.isArray(keys), "key_not_text"],
    [list?.length === 0, "no_key_version"],
  ]);
  return list.map((version, at) => {
    const { id = "", key } = Object(version) as { id?: unknown; key?: unknown };
    const where = `${option}[${at}].key`;
    if (typeof id !== "string") throw new Misused("key_not_text", `${option}[${at}].id`);
    refuse(where, [[key instanceof Promise, "missing_await"]]);
    if (typeof key !== "string") throw new Misused("key_not_text", where);
    return { id, text: key, where };
  });
}

/** @throws Misused for the first of these mistakes that was made */
function refuse(where: string, mistakes: readonly (readonly [made: boolean, reason: MisusedReason])[]): void {
  const found = mistakes.find(([made]) => made);
  if (found !== undefined) throw new Misused(found[1], where);
}

const keyBytes = 32;
const hexOfKey = /^[0-9a-fA-F]{64}$/;

/**
 * Strict: a key that is slightly wrong must fail here, at startup, and not as "not authentic" at three in the morning.
 */
function bytes(where: string, text: string): Buffer {
  const raw = Buffer.from(text, "base64");
  if (raw.length === keyBytes && raw.toString("base64") === text) return raw;
  const inner = raw.toString("latin1");
  refuse(where, [
    [text === "", "empty_key"],
    [text.startsWith(prefix), "webhook_secret_as_key"],
    [text.startsWith("pb_"), "api_key_as_key"],
    [text.trim() !== text, "white_space_in_key"],
    [hexOfKey.test(text), "hexadecimal_key"],
    [raw.length === keyBytes, "base64url_key"],
    [hexOfKey.test(inner) || /^[\w+/]{43}=$/.test(inner), "key_encoded_twice"],
    [!/^[A-Za-z0-9+/]+={0,2}$/.test(text), "key_not_base64"],
  ]);
  throw new Misused("key_length", where, { meaning: `has ${raw.length} bytes instead of ${keyBytes}` });
}

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

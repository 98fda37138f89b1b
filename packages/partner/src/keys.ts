import type { KeyObject } from "node:crypto";
import { hmacKey, type SealingKey, sealingKey, webhookKey } from "@paybell/contract";

/** One version of a key during a rotation. */
export interface KeyVersion {
  /** The version's public id, as the rotation answered it: the JWE `kid`, or the header paybell-key. */
  readonly id?: string;
  /** Base64 of 32 bytes; for webhookSecret whsec_ and the same. */
  readonly key: string;
}

/** One key as text, or every version that is right now: the old and the new one during a rotation. */
export type Keys = string | readonly KeyVersion[];

type Option = "encryptionKey" | "signingKey" | "webhookSecret";

/** A key whose id is unknown has the empty id. */
export function encryptionKeys(keys: Keys): readonly SealingKey[] {
  return versions("encryptionKey", keys).map(({ id, text, where }) => sealingKey(id, bytes(where, text)));
}

export function signingKeys(keys: Keys): readonly KeyObject[] {
  return versions("signingKey", keys).map(({ text, where }) => hmacKey(bytes(where, text)));
}

export function webhookKeys(keys: Keys): readonly KeyObject[] {
  return versions("webhookSecret", keys).map(({ text, where }) => {
    if (!text.startsWith("whsec_")) throw mistake(where, "does not begin with whsec_", webhookRemedy(text));
    bytes(where, text.slice("whsec_".length));
    return webhookKey(text);
  });
}

/** A key used for two purposes weakens both; as a rule it is one environment variable pasted twice. */
export function refuseSharedKeys(given: Readonly<Record<Option, Keys>>): void {
  const seen = new Map<string, string>();
  for (const option of ["encryptionKey", "signingKey", "webhookSecret"] as const) {
    for (const { text, where } of versions(option, given[option])) {
      const bare = text.startsWith("whsec_") ? text.slice("whsec_".length) : text;
      const twin = seen.get(bare);
      if (twin !== undefined) throw mistake(where, `is the same key as ${twin}`, "each has a value of its own");
      seen.set(bare, where);
    }
  }
}

interface Version {
  readonly id: string;
  readonly text: string;
  /** How an error names it. */
  readonly where: string;
}

function versions(option: Option, keys: unknown): readonly Version[] {
  if (typeof keys === "string") return [{ id: "", text: keys, where: option }];
  if (keys === undefined || keys === null)
    throw mistake(option, "is missing", "is the environment variable set in this process?");
  if (!Array.isArray(keys)) throw mistake(option, "is neither text nor a list", `give base64 text or [{ id, key }]`);
  if (keys.length === 0) throw mistake(option, "is an empty list", "give at least one key");
  return keys.map((version: unknown, at) => {
    const where = `${option}[${at}]`;
    const { id = "", key } = Object(version) as { id?: unknown; key?: unknown };
    if (typeof id !== "string") throw mistake(`${where}.id`, "is not text", "give the version's public id");
    if (typeof key !== "string")
      throw mistake(`${where}.key`, "is not text", "give { id, key } with the key as base64 text");
    return { id, text: key, where: `${where}.key` };
  });
}

const keyBytes = 32;
const standardAlphabet = /^[A-Za-z0-9+/]+={0,2}$/;

/**
 * Strict: a key that is slightly wrong must fail here, at the start, and not as "not authentic" at three in the
 * morning.
 */
function bytes(where: string, text: string): Buffer {
  const raw = Buffer.from(text, "base64");
  if (raw.length === keyBytes && raw.toString("base64") === text) return raw;
  if (text === "") throw mistake(where, "is empty", "is the environment variable set in this process?");
  if (text.startsWith("whsec_")) throw mistake(where, "is a webhook secret", "give that one as webhookSecret");
  if (text.startsWith("pb_")) throw mistake(where, "is an API key", "registration showed this key under its own name");
  if (text.trim() !== text) throw mistake(where, "has white space around it", "trim() it: a line end came with it");
  if (/^[0-9a-fA-F]{64}$/.test(text))
    throw mistake(where, "is hexadecimal", `convert it: Buffer.from(hex, "hex").toString("base64")`);
  if (raw.length === keyBytes)
    throw mistake(
      where,
      "is base64url or lacks its padding",
      `convert it: Buffer.from(text, "base64").toString("base64")`,
    );
  if (!standardAlphabet.test(text)) throw mistake(where, "is not base64", "give it exactly as registration showed it");
  throw mistake(where, `has ${raw.length} bytes instead of ${keyBytes}`, "give it exactly as registration showed it");
}

function webhookRemedy(text: string): string {
  const isOtherKey = Buffer.from(text, "base64").length === keyBytes;
  return isOtherKey
    ? "it looks like encryptionKey or signingKey: are the options swapped?"
    : "give the webhookSecret exactly as registration showed it";
}

/** Names the option, the mistake and the remedy; never the value. */
function mistake(where: string, what: string, remedy: string): TypeError {
  return new TypeError(`${where} ${what}: ${remedy}.`);
}

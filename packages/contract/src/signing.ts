import { createHmac, type KeyObject, timingSafeEqual } from "node:crypto";
import { canonicalJson } from "./canonical-json.ts";
import { type Column, type FieldSet, type IpnKind, ipnColumns } from "./columns.ts";
import { decodeStrictly } from "./encoding.ts";
import { secretKey } from "./keys.ts";
import { type Signing, signedFields } from "./signed-fields.ts";

interface SignedField {
  /** `name=`, preceded by `&` unless it is the first. */
  readonly lead: string;
  readonly name: string;
  readonly alias: string | undefined;
}

/** Compiled once each, because partners' settings rarely change and are used for every signature. */
const compiled: Record<FieldSet, Record<IpnKind, WeakMap<Signing, readonly SignedField[]>>> = {
  specification: { card: new WeakMap(), settlement: new WeakMap() },
  extended: { card: new WeakMap(), settlement: new WeakMap() },
};

function compile(kind: IpnKind, signing: Signing, fieldSet: FieldSet): readonly SignedField[] {
  const table = new Map<string, Column>(ipnColumns(kind, fieldSet).map((column) => [column.name, column]));
  const list = signedFields(kind, signing, fieldSet).map((name, at) => {
    const field = table.get(name);
    if (field === undefined || field.type === "list") throw new TypeError(`${name} cannot be signed as key=value`);
    return { lead: `${at === 0 ? "" : "&"}${name}=`, name, alias: field.alias };
  });
  compiled[fieldSet][kind].set(signing, list);
  return list;
}

/**
 * Returns the text that is signed: section 5.1. Values are used as they are sent. Empty, null and missing values keep
 * their key. The IPN may have the tables' names or the sample's; `fields` always signs the tables' names.
 *
 * @throws TypeError if a signed field is neither a string nor absent.
 */
export function signedString(
  kind: IpnKind,
  wire: Readonly<Record<string, unknown>>,
  signing: Signing,
  fieldSet: FieldSet = "specification",
): string {
  if (signing.mode === "whole") return canonicalJson({ ...wire, signature: undefined });
  const fields = compiled[fieldSet][kind].get(signing) ?? compile(kind, signing, fieldSet);
  let text = "";
  for (const field of fields) {
    const value = wire[field.name] ?? (field.alias === undefined ? undefined : wire[field.alias]) ?? "";
    if (typeof value !== "string") throw new TypeError(`${field.name} must be a string to be signed`);
    text += field.lead + value;
  }
  return text;
}

/** HMAC-SHA256 of the text's UTF-8 bytes, in lower-case hexadecimal: section 5, rule 4. */
export function sign(text: string, key: KeyObject): string {
  return createHmac("sha256", key).update(text, "utf8").digest("hex");
}

const macBytes = 32;

/**
 * Whether this is the text's signature, in constant time. Hexadecimal may be in either case; any other shape is false.
 */
export function signatureMatches(text: string, signature: string, key: KeyObject): boolean {
  const offered = typeof signature === "string" ? decodeStrictly(signature, "hex") : undefined;
  if (offered?.length !== macBytes) return false;
  return timingSafeEqual(createHmac("sha256", key).update(text, "utf8").digest(), offered);
}

/**
 * Returns the signing key for its 32 bytes. Keep the result: a KeyObject is cheaper than a raw key at every signature.
 *
 * @throws TypeError naming the expected length, never the value.
 */
export function hmacKey(raw: Buffer): KeyObject {
  return secretKey("a signing key", raw);
}

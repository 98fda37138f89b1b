import { createHmac, type KeyObject, timingSafeEqual } from "node:crypto";
import { type Column, extensionColumns, type FieldSet, type IpnKind, ipnColumns } from "../fields/columns.ts";
import { canonicalJson } from "../json/canonical-json.ts";
import { decodeStrictly } from "./encoding.ts";
import { secretKey } from "./keys.ts";

/**
 * The signed content, as agreed with a partner: section 5, rule 4.
 *
 * - `fields`: the important fields, in the specification's order or in an agreed one, by the tables' names
 * - `whole`: the RFC 8785 form of the IPN on the wire, without its signature
 */
export type Signing =
  | { readonly mode: "fields"; readonly card?: readonly string[]; readonly settlement?: readonly string[] }
  | { readonly mode: "whole" };

export const defaultSigning: Signing = { mode: "fields" };

/** Section 5.1: isoResponseCode is at positions 4 and 6. */
export const cardSigningOrder = [
  "aid",
  "amount",
  "approveCode",
  "isoResponseCode",
  "merchantTransId",
  "isoResponseCode",
  "cardScheme",
  "tid",
  "mid",
  "traceNo",
  "batchNo",
] as const;

/** Section 5.1. */
export const settlementSigningOrder = [
  "batchNo",
  "quantity",
  "saleQuantity",
  "saleTotalAmount",
  "voidQuantity",
  "voidTotalAmount",
  "totalAmount",
  "tid",
  "mid",
] as const;

const mustSign = {
  card: ["id", "transaction_type", "status", "amount"],
  settlement: ["id", "transaction_type", "status", "totalAmount"],
} as const satisfies Record<IpnKind, readonly string[]>;

/** extraData is free text; settlementList has no key=value form; the signature cannot sign itself. */
const neverSigned: ReadonlySet<string> = new Set(["extraData", "settlementList", "signature"]);

/** Returns a sentence for each problem of an agreed signing; empty if it is valid. */
export function signingProblems(signing: Signing, fields: FieldSet = "specification"): string[] {
  if (signing.mode === "whole") return [];
  if (signing.mode !== "fields") return ['signing.mode must be "fields" or "whole"'];
  return [...listProblems("card", signing.card, fields), ...listProblems("settlement", signing.settlement, fields)];
}

function listProblems(kind: IpnKind, list: readonly string[] | undefined, fields: FieldSet): string[] {
  if (list === undefined) return [];
  if (!Array.isArray(list)) return [`signing.${kind} must be a list of field names`];
  const known = new Set(ipnColumns(kind, fields).map(({ name }) => name));
  const unusable = list.flatMap((name: string) => {
    if (neverSigned.has(name)) return [`signing.${kind} must not hold ${name}`];
    if (!known.has(name) && isExtension(kind, name))
      return [`signing.${kind} holds ${name}, which only an extended IPN has: set fields to extended, or leave it out`];
    if (!known.has(name))
      return [`signing.${kind} holds ${JSON.stringify(name)}, which is no field of the ${kind} IPN`];
    return [];
  });
  const missing = mustSign[kind].filter((name) => !list.includes(name));
  return [...unusable, ...missing.map((name) => `signing.${kind} must hold ${name}`)];
}

function isExtension(kind: IpnKind, name: string): boolean {
  return extensionColumns[kind].some((column) => column.name === name);
}

/**
 * The fields that a signature covers, by the tables' names, in the order of the signed string. Those of an extended IPN
 * follow the specification's; an agreed list may name them at another place. The list of a receiver that accepts both
 * kinds of IPN may name them too: they are no part of the other kind.
 */
export function signedFields(kind: IpnKind, signing: Signing, fields: FieldSet = "specification"): readonly string[] {
  if (signing.mode === "whole") {
    return ipnColumns(kind, fields)
      .map(({ name }) => name)
      .filter((name) => name !== "signature");
  }
  const agreed: readonly string[] =
    kind === "card" ? (signing.card ?? cardSigningOrder) : (signing.settlement ?? settlementSigningOrder);
  if (fields === "specification") return agreed.filter((name) => !isExtension(kind, name));
  const added = extensionColumns[kind].map(({ name }) => name);
  return [...agreed, ...added.filter((name) => !agreed.includes(name))];
}

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

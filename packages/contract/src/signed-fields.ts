import { extensionColumns, type FieldSet, type IpnKind, ipnColumns } from "./columns.ts";

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

import { type IpnKind, ipnColumns } from "./columns.ts";

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
export function signingProblems(signing: Signing): string[] {
  if (signing.mode === "whole") return [];
  if (signing.mode !== "fields") return ['signing.mode must be "fields" or "whole"'];
  return [...listProblems("card", signing.card), ...listProblems("settlement", signing.settlement)];
}

function listProblems(kind: IpnKind, list: readonly string[] | undefined): string[] {
  if (list === undefined) return [];
  if (!Array.isArray(list)) return [`signing.${kind} must be a list of field names`];
  const known = new Set(ipnColumns(kind).map(({ name }) => name));
  const unusable = list.flatMap((name: string) => {
    if (neverSigned.has(name)) return [`signing.${kind} must not hold ${name}`];
    if (!known.has(name))
      return [`signing.${kind} holds ${JSON.stringify(name)}, which is no field of the ${kind} IPN`];
    return [];
  });
  const missing = mustSign[kind].filter((name) => !list.includes(name));
  return [...unusable, ...missing.map((name) => `signing.${kind} must hold ${name}`)];
}

/** The fields that a signature covers, by the tables' names, in the order of the signed string. */
export function signedFields(kind: IpnKind, signing: Signing): readonly string[] {
  if (signing.mode === "whole") {
    return ipnColumns(kind)
      .map(({ name }) => name)
      .filter((name) => name !== "signature");
  }
  if (kind === "card") return signing.card ?? cardSigningOrder;
  return signing.settlement ?? settlementSigningOrder;
}

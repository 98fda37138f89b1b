import type { CardScheme } from "./codes.ts";

/** Common AID values, all of type EMV: section 2.4. */
export const aids = [
  { aid: "A0000000031010", scheme: "VISA", kind: "debit/credit classic (standard/gold credit)" },
  { aid: "A00000000401", scheme: "MASTER", kind: "credit/debit global" },
  { aid: "A0000000651010", scheme: "JCB", kind: "credit" },
  { aid: "A000000333010101", scheme: "UPI", kind: "debit" },
  { aid: "A000000333010102", scheme: "UPI", kind: "credit" },
  { aid: "A0000000250000", scheme: "AMEX", kind: "credit/debit" },
] as const satisfies readonly { aid: string; scheme: CardScheme; kind: string }[];

/** An AID begins with its scheme's RID: 5 bytes, registered under ISO/IEC 7816-5. */
const ridHexDigits = 10;

const schemeByRid: ReadonlyMap<string, CardScheme> = new Map(
  aids.map(({ aid, scheme }) => [aid.slice(0, ridHexDigits), scheme]),
);

/**
 * The card scheme of an AID, found by its first 10 hex digits in either case, so that AIDs outside the table have one
 * too. Empty for a RID that the table does not contain.
 */
export function cardSchemeFor(aid: string): CardScheme | "" {
  return schemeByRid.get(aid.slice(0, ridHexDigits).toUpperCase()) ?? "";
}

/** Whether the AID is known to belong to another scheme than `scheme`. An unknown AID contradicts nothing. */
export function contradicts(aid: string, scheme: string): boolean {
  const known = cardSchemeFor(aid);
  return known !== "" && scheme !== "" && known !== scheme.toUpperCase();
}

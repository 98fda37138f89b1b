import { type IpnKind, type Signing, signedFields } from "@paybell/contract";
import type { FieldProblem } from "../errors.ts";
import { broken } from "./rules.ts";

// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what it looks for.
const delimiterPattern = /[&\u0000-\u001f\u007f-\u009f]/;

/** The IPN fields filled by a command's field, if the names differ. */
const filledBy: Readonly<Record<string, readonly string[]>> = {
  mid: ["mid", "merchantId"],
  merchantId: ["mid", "merchantId"],
  callBackUrl: ["callbackUrl"],
  "card.number": ["cardNumber"],
  "card.scheme": ["cardScheme"],
  "card.aid": ["aid"],
  "card.swipeType": ["swipeType"],
  "card.holder": ["cardHolder"],
  "card.expiry": ["expDate"],
  "card.tc": ["tc"],
};

/**
 * A signed value that contains `&` or a control character: key=value pairs are joined with `&` without escaping, so two
 * different IPNs could have one signed string (section 5.1). With `whole` signing nothing is joined, and nothing is
 * refused.
 */
export function delimiterProblem(
  field: string,
  text: string,
  kind: IpnKind,
  signing: Signing,
): FieldProblem | undefined {
  if (signing.mode === "whole" || !delimiterPattern.test(text)) return undefined;
  const signed = signedFields(kind, signing);
  if (!(filledBy[field] ?? [field]).some((name) => signed.includes(name))) return undefined;
  return broken(field, "delimiter_in_signed_field", "is signed and holds & or a control character");
}

import type { FieldProblem } from "../errors.ts";
import { holdsCardNumber, merchantIdHoldsCardNumber } from "../guards/card-number.ts";
import { broken } from "./rules.ts";

const merchantId = /(^|\.)(mid|merchantId)$/;

/** The check for one field. The message never repeats the value. */
export function cardNumberProblem(field: string, text: string): FieldProblem | undefined {
  const holds = merchantId.test(field) ? merchantIdHoldsCardNumber(text) : holdsCardNumber(text);
  if (!holds) return undefined;
  return broken(
    field,
    "card_number_in_clear",
    "holds what looks like a full card number, a card's security code, PIN or track",
  );
}

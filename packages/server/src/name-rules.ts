import { holdsCardNumber } from "./card-number.ts";
import type { FieldProblem } from "./errors.ts";

const charactersMax = 100;
/** The direction too: it would show text after the name in another order. */
const controls = /[\p{Cc}\p{Bidi_Control}]/u;

/** The problems of a name that is given to an operator or an API key. It is kept in the clear, in the audit too. */
export function nameProblems(name: string): FieldProblem[] {
  if (name.trim() === "" || name.length > charactersMax || controls.test(name)) {
    const message = `name must have 1 to ${charactersMax} characters, none of them a control or direction mark.`;
    return [{ field: "name", code: "invalid_value", message }];
  }
  if (!holdsCardNumber(name)) return [];
  return [{ field: "name", code: "card_number_in_clear", message: "name holds what looks like a full card number." }];
}

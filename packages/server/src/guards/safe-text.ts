import type { FieldProblem } from "../errors.ts";
import { holdsCardNumber } from "./card-number.ts";

const charactersMax = 100;
/** The card guard takes a microsecond for each character. */
const examinedMax = 1_000;

/**
 * The name of a field that a caller made up, as an error, an event and the log may repeat it: cut, and without a card
 * number, NUL and half of a surrogate pair, which no table holds.
 */
export function safeFieldName(name: string): string {
  if (name.length > examinedMax) return "[a long name]";
  if (holdsCardNumber(name)) return "[a card number]";
  return name.slice(0, charactersMax).toWellFormed().replaceAll("\0", "\ufffd");
}

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

/** A spreadsheet takes a cell that begins so for a formula, and partners choose some of these texts. */
const formula = /^[=+\-@\t\r]/;

/** One cell of a CSV line, RFC 4180. A text that a spreadsheet would run begins with an apostrophe. */
export function csvCell(value: string | number | null | undefined): string {
  if (typeof value === "number") return String(value);
  const text = formula.test(value ?? "") ? `'${value}` : (value ?? "");
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

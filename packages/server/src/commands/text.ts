import type { FieldProblem } from "../errors.ts";
import { broken } from "./rules.ts";

/** Neither PostgreSQL nor a strict JSON parser accepts NUL, and half of a surrogate pair has no UTF-8 form. */
export function isSendable(text: string): boolean {
  return text.isWellFormed() && !text.includes("\0");
}

export function textProblem(field: string, text: string): FieldProblem | undefined {
  if (isSendable(text)) return undefined;
  return broken(field, "invalid_text", "holds NUL or half of a surrogate pair, which no IPN can carry");
}

/** Replaces every character that cannot be sent by U+FFFD, in a text that must not be refused. */
export function replaceUnsendable(text: string): string {
  return isSendable(text) ? text : text.toWellFormed().replaceAll("\0", "\ufffd");
}

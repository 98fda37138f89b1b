import { isSendable, replaceUnsendable } from "../commands/text.ts";
import type { FieldProblem } from "../errors.ts";
import { safeFieldName } from "../safe-field-name.ts";
import { pathText, problemsMax } from "./issues.ts";

/**
 * The strings of a JSON value, keys too, that no table can hold: with NUL or half of a surrogate pair. At most as many
 * as an error names. The caller bounds the nesting.
 */
export function unsendableTexts(value: unknown): FieldProblem[] {
  const found: FieldProblem[] = [];
  collect(value, [], found);
  return found;
}

function collect(value: unknown, path: readonly PropertyKey[], found: FieldProblem[]): void {
  if (found.length === problemsMax) return;
  if (typeof value === "string") {
    if (!isSendable(value)) found.push(problemAt(path));
  } else if (Array.isArray(value)) {
    for (const [at, item] of value.entries()) collect(item, [...path, at], found);
  } else if (typeof value === "object" && value !== null) {
    for (const [key, item] of Object.entries(value)) {
      const inner = [...path, safeFieldName(key)];
      if (isSendable(key)) collect(item, inner, found);
      else if (found.length < problemsMax) found.push(problemAt(inner));
    }
  }
}

function problemAt(path: readonly PropertyKey[]): FieldProblem {
  const field = replaceUnsendable(pathText(path));
  return { field, code: "invalid_text", message: `${field} holds NUL or half of a surrogate pair.` };
}

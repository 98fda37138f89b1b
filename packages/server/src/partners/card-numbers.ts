import type { FieldProblem } from "../errors.ts";
import { safeFieldName } from "../safe-field-name.ts";
import { isObject } from "./problems.ts";

/** Checks a field's text for card numbers; undefined if it contains none. */
export type CardNumberCheck = (field: string, text: string) => FieldProblem | undefined;

/** No setting is nested more deeply: what is deeper is refused by its shape, which repeats nothing of it. */
const depthMax = 4;

/**
 * Adds to the problems of settings every card number in their keys and values. Of a setting that holds one nothing else
 * is reported, because the message might repeat it.
 */
export function withCardNumbers(
  given: object,
  problems: readonly FieldProblem[],
  check: CardNumberCheck,
): FieldProblem[] {
  const found = Object.entries(given).map(([name, value]) => ({ name, numbers: numbersOf(name, value, "", check) }));
  const holding = new Set(found.filter(({ numbers }) => numbers.length > 0).map(({ name }) => name));
  const others = problems.filter(({ field }) => !holding.has(field) && !holding.has(settingOf(field)));
  return [...others, ...found.flatMap(({ numbers }) => numbers)];
}

function numbersOf(key: string, value: unknown, path: string, check: CardNumberCheck, depth = 1): FieldProblem[] {
  const field = path + safeFieldName(key);
  const problem = check(field, key);
  return problem === undefined ? numbersIn(field, value, check, depth) : [problem];
}

function numbersIn(field: string, value: unknown, check: CardNumberCheck, depth: number): FieldProblem[] {
  if (typeof value === "string") return [check(field, value)].filter((problem) => problem !== undefined);
  if (depth === depthMax) return [];
  if (Array.isArray(value)) return value.flatMap((one, at) => numbersIn(`${field}[${at}]`, one, check, depth + 1));
  if (!isObject(value)) return [];
  return Object.entries(value).flatMap(([key, inner]) => numbersOf(key, inner, `${field}.`, check, depth + 1));
}

/** The first part of a path such as `reports.schemes.NAPAS` or `retry[3]`. */
function settingOf(field: string): string {
  return field.split(/[.[]/, 1)[0] ?? "";
}

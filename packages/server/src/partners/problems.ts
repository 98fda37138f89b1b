import type { FieldProblem } from "../errors.ts";

export function choiceProblems(field: string, value: unknown, allowed: readonly unknown[]): FieldProblem[] {
  return allowed.includes(value) ? [] : [invalid(field, `must be one of ${allowed.join(", ")}`)];
}

export function wholeNumberProblems(field: string, value: unknown, min: number, max: number): FieldProblem[] {
  if (typeof value !== "number") return [wrongType(field, "a number")];
  return Number.isInteger(value) && value >= min && value <= max
    ? []
    : [invalid(field, `must be a whole number from ${min} to ${max}`)];
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

export function invalid(field: string, rule: string): FieldProblem {
  return { field, code: "invalid_value", message: `${field} ${rule}.` };
}

export function tooLong(field: string, rule: string): FieldProblem {
  return { field, code: "too_long", message: `${field} ${rule}.` };
}

export function unknownField(field: string, rule: string): FieldProblem {
  return { field, code: "unknown_field", message: `${field} ${rule}.` };
}

export function wrongType(field: string, type: string): FieldProblem {
  return { field, code: "wrong_type", message: `${field} must be ${type}.` };
}

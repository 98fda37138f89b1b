import { type ErrorCode, errors } from "./error-table.ts";

export { type ErrorCode, errors } from "./error-table.ts";

/**
 * One invalid field of a request: its path, the broken rule, and a description. Never contains the value of a secret.
 */
export interface FieldProblem {
  /** A path such as `card.number` or `completions[3].amount`. */
  readonly field: string;
  readonly code: ErrorCode;
  readonly message: string;
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

interface Details {
  readonly fields?: readonly FieldProblem[];
  readonly retryAfterS?: number;
  readonly cause?: unknown;
}

/** An error with a stable code, fit to be shown to the caller. Any other error is a bug, and is shown as `internal`. */
export class ServiceError extends Error {
  override readonly name = "ServiceError";
  readonly code: ErrorCode;
  readonly fields: readonly FieldProblem[];
  readonly retryAfterS: number | undefined;

  constructor(code: ErrorCode, message: string = `${errors[code].title}.`, details: Details = {}) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause });
    this.code = code;
    this.fields = details.fields ?? [];
    this.retryAfterS = details.retryAfterS;
  }

  get status(): number {
    return errors[this.code].status;
  }
}

/** One error for all invalid fields of a request: their common code, otherwise `invalid_request`. */
export function badFields(fields: readonly [FieldProblem, ...FieldProblem[]]): ServiceError {
  const [first] = fields;
  const code = fields.every((problem) => problem.code === first.code) ? first.code : "invalid_request";
  return new ServiceError(code, fields.length === 1 ? first.message : countOf(fields, code), { fields });
}

const namesMax = 8;

/** A field that broke two rules counts once. */
function countOf(fields: readonly FieldProblem[], code: ErrorCode): string {
  const names = [...new Set(fields.map(({ field }) => field))];
  const what = code === "missing_field" ? "missing" : "wrong";
  const shown = names.length > namesMax ? [...names.slice(0, namesMax), "…"].join(", ") : names.join(", ");
  return names.length === 1 ? `${shown} is wrong.` : `${names.length} fields are ${what}: ${shown}.`;
}

/** A thrown value as an error. If none of a host's addresses could be reached, it is that of the first one. */
export function firstFailure(error: unknown): Error {
  if (!(error instanceof Error)) return new Error(String(error));
  const isOfAddresses = error instanceof AggregateError && error.message === "";
  return isOfAddresses && error.errors[0] instanceof Error ? error.errors[0] : error;
}

export function messageOf(error: unknown): string {
  return firstFailure(error).message;
}

import type { ErrorCode, Problem } from "./api.ts";
import { PaybellError } from "./paybell-error.ts";

/** Failures that the client detects itself, when the service did not answer with a problem. */
export type ClientErrorCode =
  /** The connection failed: it is not known whether the call arrived. */
  | "no_answer"
  /** No answer within timeoutMs: it is not known whether the call was processed. */
  | "timeout"
  /** The answer did not come from Paybell, but from a proxy or another server at this baseUrl. */
  | "not_paybell";

/** A call that failed. Branch on `code`. */
export class ApiError extends PaybellError {
  readonly code: ErrorCode | ClientErrorCode;
  /** The HTTP status; 0 without an answer. */
  readonly status: number;
  /** The remedy. */
  readonly remedy: string;
  /** The problem as answered, with every invalid field in `errors`. */
  readonly problem: Problem | undefined;
  /** When to try again, if the answer said so. */
  readonly retryAfterMs: number | undefined;

  constructor(
    code: ErrorCode | ClientErrorCode,
    message: string,
    remedy: string,
    more: { status?: number; problem?: Problem; retryAfterMs?: number | undefined; cause?: unknown } = {},
  ) {
    super(message, more.cause === undefined ? undefined : { cause: more.cause });
    this.code = code;
    this.status = more.status ?? 0;
    this.remedy = remedy;
    this.problem = more.problem;
    this.retryAfterMs = more.retryAfterMs;
  }

  override get name(): string {
    return "ApiError";
  }
}

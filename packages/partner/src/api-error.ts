import type { ErrorCode, Problem } from "./api.ts";
import { PaybellError } from "./paybell-error.ts";

/** What the client finds itself, where no problem was answered. */
export type ClientErrorCode =
  /** The connection failed: nobody knows whether the call arrived. */
  | "no_answer"
  /** No answer within timeoutMs: nobody knows what became of the call. */
  | "timeout"
  /** Something else than Paybell answered: a proxy, or another server under this baseUrl. */
  | "not_paybell";

/** A call that failed. Branch on `code`. */
export class ApiError extends PaybellError {
  readonly code: ErrorCode | ClientErrorCode;
  /** Of the answer; 0 where there was none. */
  readonly status: number;
  /** What to do about it. */
  readonly remedy: string;
  /** As answered, with every bad field in `errors`. */
  readonly problem: Problem | undefined;
  /** When to try again, where the answer said so. */
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

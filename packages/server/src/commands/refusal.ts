import { type ErrorCode, ServiceError } from "../errors.ts";

/** Why the state forbids a command, before anything of it is accepted. */
export interface Refusal {
  readonly code: ErrorCode;
  /** The state that forbids it, and what to do instead. */
  readonly message: string;
  /** If the state passes by itself. */
  readonly retryAfterS?: number;
}

export function refusalError({ code, message, retryAfterS }: Refusal): ServiceError {
  return new ServiceError(code, message, retryAfterS === undefined ? {} : { retryAfterS });
}

/** A settlement takes one exchange with the acquirer, or a few; retrying sooner is pointless. */
const settlementRetryAfterS = 5;

export function settlementInProgress(what: string): Refusal {
  return {
    code: "settlement_in_progress",
    message: `${what} is being settled: repeat the same request once the settlement has ended.`,
    retryAfterS: settlementRetryAfterS,
  };
}

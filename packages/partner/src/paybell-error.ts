/**
 * Whatever this library throws of itself. Branch on `code`; a code is never renamed. What your own function throws
 * passes as it is.
 */
export abstract class PaybellError extends Error {
  /**
   * `not_authentic` for what came from outside, `misused` for your own mistake, `ipn_in_progress` of a store; of a call
   * what the service answered or the client found, and of a cursor why it was refused.
   */
  abstract readonly code: string;
  /** What to do. For your own side only. */
  abstract readonly remedy: string;
}

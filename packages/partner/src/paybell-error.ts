/**
 * The base class of every error of this library. Branch on `code`; a code is never renamed. Errors of your own function
 * are passed on unchanged.
 */
export abstract class PaybellError extends Error {
  /**
   * `not_authentic` for an IPN from outside, `misused` for your own mistake, `ipn_in_progress` from a store; for a call
   * the service's or the client's code, and for a cursor the reason of its refusal.
   */
  abstract readonly code: string;
  /** The remedy. For your own side only. */
  abstract readonly remedy: string;
}

/** Whatever this library throws of itself: an IPN that was refused, or a mistake in your own code or configuration. */
export abstract class PaybellError extends Error {
  /** `not_authentic` for what came from outside, `misused` for your own mistake. */
  abstract readonly code: "not_authentic" | "misused";
  /** Which cause exactly. Stable: branch on it, list it, count it. For your own side only. */
  abstract readonly reason: string;
  /** What to do. For your own side only. */
  abstract readonly remedy: string;
}

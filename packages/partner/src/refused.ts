import type { NotAuthenticReason } from "@paybell/contract";

/** Why an IPN was refused: what its content shows, or what the headers already showed. */
export type RefusedReason =
  | NotAuthenticReason
  /** The body is longer than `bodyBytesMax`. */
  | "too_large"
  /** webhook-id, webhook-timestamp or webhook-signature is not there. */
  | "missing_headers"
  /** webhook-timestamp is no time, or too far from now: a delayed message, a wrong clock, or a replay. */
  | "not_fresh"
  /** webhook-signature is not that of this body under any of the webhook secrets. */
  | "webhook_signature";

const hints: Record<RefusedReason, string> = {
  too_large: "The body is longer than any IPN; it was not read.",
  missing_headers:
    "A proxy may have removed webhook-id, webhook-timestamp or webhook-signature: let them pass. " +
    "Where it cannot, see allowMissingHeaders.",
  not_fresh: "Check this machine's clock (NTP). If the clock is right, the message is old and may be a replay.",
  webhook_signature:
    "Compare webhookSecret with the one that registration or the last rotation showed. If it is right, the body is " +
    "not the one that was sent: pass the raw bytes, before any JSON parser or proxy rewrites them.",
  envelope: 'The body is not a JSON object with the one field "data".',
  encoding: "data is not in the agreed encoding: compare cipher and encoding with GET /v1/self.",
  jwe_header: "data is no JWE with alg dir and enc A256GCM: compare cipher with GET /v1/self.",
  unknown_key: "The JWE names a key version that is not among encryptionKey: install the version that the kid names.",
  decryption:
    "No encryptionKey opens it: compare cipher with GET /v1/self, and the header paybell-key with the version you " +
    "installed.",
  not_text: "It opened, but to no UTF-8 text: compare cipher with GET /v1/self.",
  not_json: "It opened, but to no JSON object: compare cipher with GET /v1/self.",
  duplicate_key: "A JSON key stands twice in the IPN.",
  two_names: "A field stands in the IPN under both of its names.",
  wrong_type: "A value of the IPN is not a string, or settlementList is no list of objects.",
  signature:
    "It opened, but its signature is not that of the signed string: compare signingKey with the one you were given, " +
    "and signing (mode and field lists) with GET /v1/self.",
};

/**
 * The IPN is not authentic, or not fresh. Every cause looks the same from outside (message, code, stack, JSON): an
 * answer that tells one from another helps whoever forges. `reason` and `hint` are getters on the prototype, for your
 * own log only; neither holds a key or anything of the opened content.
 */
export class IpnRefused extends Error {
  readonly code = "not_authentic";
  readonly #reason: RefusedReason;
  readonly #finding: string;

  /** @param finding what was seen, for the hint; must not hold raw text of the sender's */
  constructor(reason: RefusedReason, finding = "") {
    super("The IPN is not authentic.");
    this.#reason = reason;
    this.#finding = finding;
    // The stack would name the line that refused, which is the reason again.
    Object.defineProperty(this, "stack", {
      value: `IpnRefused: ${this.message}`,
      enumerable: false,
      writable: true,
      configurable: true,
    });
  }

  override get name(): string {
    return "IpnRefused";
  }

  /** For your own log. Never answer with it. */
  get reason(): RefusedReason {
    return this.#reason;
  }

  /** What to look at, in whole sentences. For your own log; never answer with it. */
  get hint(): string {
    return this.#finding === "" ? hints[this.#reason] : `${this.#finding} ${hints[this.#reason]}`;
  }
}

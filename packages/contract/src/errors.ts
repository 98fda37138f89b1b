/** Why something was refused: for the owner of the keys only, never for the sender. */
export type NotAuthenticReason =
  /** The POSTed body is not a JSON object with the one field `data`. */
  | "envelope"
  /** `data` is not in the agreed encoding, or too short for the agreed cipher. */
  | "encoding"
  /** The JWE header names another algorithm, a compression, or is no header at all. */
  | "jwe_header"
  /** The JWE names a key that is not among ours. */
  | "unknown_key"
  /** None of the keys opens it: another key, another cipher, or changed bytes. */
  | "decryption"
  /** Opened, but the content is not UTF-8 text. */
  | "not_text"
  /** Opened, but the content is not a JSON object. */
  | "not_json"
  /** A JSON key stands twice in one object. */
  | "duplicate_key"
  /** A field stands under two of its names. */
  | "two_names"
  /** A value that must be a string is something else, or settlementList is no list of objects. */
  | "wrong_type"
  /** The signature is missing or is not that of the signed string. */
  | "signature";

/**
 * The message was not sealed and signed with our keys, or not as agreed.
 *
 * Every cause ends in the same name, message, code and stack: whoever sends forged messages must not learn how far
 * one came (an answer that tells bad padding from a bad signature decrypts AES-CBC for the attacker). `reason` is a
 * getter on the prototype, so loggers, JSON and structuredClone do not carry it away.
 */
export class NotAuthentic extends Error {
  readonly code = "not_authentic";
  readonly #reason: NotAuthenticReason;

  constructor(reason: NotAuthenticReason) {
    super("The message is not authentic.");
    this.#reason = reason;
    // The stack would name the line that refused, which is the reason again.
    Object.defineProperty(this, "stack", {
      value: `NotAuthentic: ${this.message}`,
      enumerable: false,
      writable: true,
      configurable: true,
    });
  }

  override get name(): string {
    return "NotAuthentic";
  }

  /** For the log of the keys' owner. Never answer with it. */
  get reason(): NotAuthenticReason {
    return this.#reason;
  }
}

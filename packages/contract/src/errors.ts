/** The reason for a refusal. It is for the owner of the keys only, never for the sender. */
export type NotAuthenticReason =
  /** The POSTed body is not a JSON object with the one field `data`. */
  | "envelope"
  /** `data` is not in the agreed encoding, or is too short for the agreed cipher. */
  | "encoding"
  /** The JWE header names another algorithm or a compression, or is not a JWE header. */
  | "jwe_header"
  /** The JWE names an unknown key. */
  | "unknown_key"
  /** None of the keys decrypts it: another key, another cipher, or modified bytes. */
  | "decryption"
  /** It was decrypted, but the content is not UTF-8 text. */
  | "not_text"
  /** It was decrypted, but the content is not a JSON object. */
  | "not_json"
  /** An object has the same JSON key twice. */
  | "duplicate_key"
  /** A field occurs under two of its names. */
  | "two_names"
  /** A value that must be a string is not, or settlementList is not a list of objects. */
  | "wrong_type"
  /** The signature is missing, or does not match the signed string. */
  | "signature";

/**
 * The message was not sealed and signed with our keys, or not as agreed.
 *
 * Every cause has the same name, message, code and stack: a sender of forged messages must not learn how far one got
 * (an answer that distinguishes bad padding from a bad signature decrypts AES-CBC for the attacker). `reason` is a
 * getter on the prototype, so that loggers, JSON and structuredClone do not copy it.
 */
export class NotAuthentic extends Error {
  readonly code = "not_authentic";
  readonly #reason: NotAuthenticReason;

  constructor(reason: NotAuthenticReason) {
    super("The message is not authentic.");
    this.#reason = reason;
    // The stack would contain the line that refused, which reveals the reason.
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

  /** For the log of the keys' owner. Never send it to the sender. */
  get reason(): NotAuthenticReason {
    return this.#reason;
  }
}

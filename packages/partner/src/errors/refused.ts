import type { NotAuthenticReason } from "@paybell/contract/receiving";
import { PaybellError } from "./misused.ts";

/** Why an IPN was refused. */
export type RefusedReason =
  | NotAuthenticReason
  | "source_address"
  | "source_unknown"
  | "too_large"
  | "missing_headers"
  | "not_fresh"
  | "webhook_signature"
  | "empty_body"
  | "compressed_body"
  | "html_body"
  | "stringified_body"
  | "rewritten_body"
  | "swapped_keys"
  | "wrong_cipher"
  | "wrong_encoding"
  | "wrong_signing"
  | "wrong_fields";

const notAnIpn = "Nothing: this is not an IPN.";
const neverSent = "Tell the operator: Paybell never sends that.";
const registered = "with GET /v1/self";

/** Every reason: its meaning, and what to do about it. */
export const refusals: Readonly<Record<RefusedReason, readonly [meaning: string, remedy: string]>> = {
  source_address: [
    "The request comes from an address outside sourceAddresses.",
    "If Paybell sent it, add its egress address, or your proxy to trustedProxies.",
  ],
  source_unknown: [
    "sourceAddresses is set, but the address is unknown.",
    "Set remoteAddress of the handler, or pass the address to open() as its third argument.",
  ],
  too_large: ["The body is longer than any IPN; it was not read.", notAnIpn],
  missing_headers: [
    "webhook-id, webhook-timestamp or webhook-signature is missing.",
    "Let your proxy pass them (or see allowMissingHeaders), and give open() the headers.",
  ],
  not_fresh: [
    "webhook-timestamp is too far from this machine's clock.",
    "Set the clock (NTP). If it is right, this may be a replay.",
  ],
  webhook_signature: [
    "webhook-signature does not match this body under any webhookSecret.",
    "Compare webhookSecret with registration or the last rotation. If it is right, pass the raw bytes, before a JSON " +
      "parser or proxy rewrites them.",
  ],
  empty_body: ["The body is empty.", "Read the body before anything else does, and pass its bytes."],
  compressed_body: ["The body is gzip; Paybell sends it plain.", "Have your proxy leave the body as it is."],
  html_body: ["The body is a web page or XML.", "Paybell did not send this: check what is in front of your server."],
  stringified_body: [
    "The body is an object made a string, or a string within a string.",
    "Pass the raw bytes: not String(body), nor JSON.stringify() of a string.",
  ],
  rewritten_body: [
    "The body was parsed and re-serialised.",
    "Read the request before the JSON parser does, and pass the raw bytes.",
  ],
  swapped_keys: ["A key is set under the name of another.", "Compare the three with what registration showed."],
  wrong_cipher: ["Its cipher is not the configured one.", `Compare cipher ${registered}.`],
  wrong_encoding: ["Its encoding is not the configured one.", `Compare encoding ${registered}.`],
  wrong_signing: ["Its signing is not the configured one.", `Compare signing ${registered}.`],
  wrong_fields: [
    "Its fields are not the configured ones.",
    `Compare fields ${registered}. While they change, accept both: fields: ["specification", "extended"].`,
  ],
  envelope: ['The body is not a JSON object with the one field "data".', notAnIpn],
  encoding: ["data is not in the configured encoding.", `Compare cipher and encoding ${registered}.`],
  jwe_header: ["data is not a JWE with alg dir and enc A256GCM.", `Compare cipher ${registered}.`],
  unknown_key: [
    "The JWE names a key version that is not among encryptionKey.",
    "Install the version that the kid names.",
  ],
  decryption: [
    "No encryptionKey decrypts it.",
    "Compare encryptionKey with registration or the last rotation (paybell-key names its version), and cipher " +
      `${registered}.`,
  ],
  not_text: ["The decrypted content is not UTF-8 text.", `Compare cipher ${registered}.`],
  not_json: ["The decrypted content is not a JSON object.", `Compare cipher ${registered}.`],
  duplicate_key: ["The IPN has a duplicate JSON key.", neverSent],
  two_names: ["The IPN has a field under both of its names.", neverSent],
  wrong_type: ["A value of the IPN is not a string, or settlementList is not a list of objects.", neverSent],
  signature: [
    "The IPN was decrypted, but its signature does not match the signed string.",
    `Compare signingKey with the one you were given, and signing (mode and field lists) ${registered}.`,
  ],
};

/**
 * The IPN is not authentic, or not fresh. `reason`, `remedy` and `hint` are for your log, never for an answer: they
 * would help a forger. None contains a key or decrypted content.
 */
export class IpnRefused extends PaybellError {
  readonly code = "not_authentic";
  readonly #reason: RefusedReason;
  readonly #finding: string;

  // finding: what was found, instead of the general meaning. It must not contain raw text of the sender.
  constructor(reason: RefusedReason, finding = "") {
    super("The IPN is not authentic.");
    this.#reason = reason;
    this.#finding = finding;
    // The stack would contain the line that refused, which reveals the reason.
    this.stack = `IpnRefused: ${this.message}`;
  }

  override get name(): string {
    return "IpnRefused";
  }

  get reason(): RefusedReason {
    return this.#reason;
  }

  get remedy(): string {
    return refusals[this.#reason][1];
  }

  /** The finding and the remedy. */
  get hint(): string {
    return `${this.#finding || refusals[this.#reason][0]} ${this.remedy}`;
  }
}

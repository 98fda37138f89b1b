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

const environment = "Is the environment variable set in this process?";
const asShown = "Give it exactly as registration showed it.";

/** The kind of the mistake. */
export type MisusedReason =
  | "missing_key"
  | "empty_key"
  | "key_not_text"
  | "no_key_version"
  | "hexadecimal_key"
  | "key_encoded_twice"
  | "base64url_key"
  | "white_space_in_key"
  | "key_not_base64"
  | "key_length"
  | "webhook_secret_as_key"
  | "api_key_as_key"
  | "no_whsec_prefix"
  | "two_whsec_prefixes"
  | "shared_key"
  | "missing_await"
  | "unknown_option"
  | "wrong_option"
  | "headers_given_up"
  | "no_options"
  | "no_address"
  | "not_raw"
  | "no_headers"
  | "no_receiver"
  | "no_function"
  | "no_store"
  | "no_id"
  | "no_amount"
  | "body_already_read";

/** Every mistake, and what to do about it. */
export const misuses: Readonly<Record<MisusedReason, readonly [meaning: string, remedy: string]>> = {
  missing_key: ["is missing", environment],
  empty_key: ["is empty", environment],
  key_not_text: ["is neither a string nor a list of versions", "Give a base64 string or [{ id, key }], both strings."],
  no_key_version: ["is an empty list", "Give at least one version."],
  hexadecimal_key: ["is hexadecimal", 'Convert it: Buffer.from(hex, "hex").toString("base64").'],
  key_encoded_twice: ["is base64-encoded twice", "Decode it once."],
  base64url_key: ["is base64url or lacks its padding", 'Convert it: Buffer.from(text, "base64").toString("base64").'],
  white_space_in_key: ["has white space around it", "trim() it: it includes a line end."],
  key_not_base64: ["is not base64", asShown],
  key_length: ["does not have 32 bytes", asShown],
  webhook_secret_as_key: ["is a webhook secret", "Set it as webhookSecret."],
  api_key_as_key: ["is an API key", "Registration showed this key under its own name."],
  no_whsec_prefix: [
    "does not begin with whsec_",
    "Give webhookSecret with its prefix; if this is encryptionKey or signingKey, the options are swapped.",
  ],
  two_whsec_prefixes: ["begins with whsec_ twice", asShown],
  shared_key: ["is the same key as another", "Each key has its own value: one variable was pasted twice."],
  missing_await: ["is a Promise", "await it first."],
  unknown_option: ["is not an option", "See ReceiverOptions."],
  wrong_option: ["cannot be used this way", "See ReceiverOptions."],
  headers_given_up: [
    'allowMissingHeaders cannot be used with aes-256-cbc unless signing is { mode: "whole" }',
    "Use aes-256-gcm or jwe, or sign the whole IPN. Otherwise nothing would protect the fields that are not signed.",
  ],
  no_options: ["has no options", "Give an object: { … }."],
  no_address: ["is not an IP address or CIDR block", "Write it as 203.0.113.7, 203.0.113.0/24 or 2001:db8::/32."],
  not_raw: [
    "open() needs the raw body as received (bytes or a string), not the result of a JSON parser",
    "Read the request before the parser does.",
  ],
  no_headers: ["open() needs the request's headers", "Pass them as its second argument."],
  no_receiver: ["The handler's first argument is not a receiver", "Make one: receiver({ encryptionKey, … })."],
  no_function: ["was given no function", "Pass the function that processes an IPN."],
  no_store: ["was given no store", "Make one: memoryStore()."],
  no_id: ["is empty: it identifies nothing", "Check where the value comes from."],
  no_amount: ["is not a decimal number", "Pass it as in its IPN: 12.50."],
  body_already_read: ["Something read the body before the handler did", "Let the handler read it."],
};

/** A mistake in your code or configuration. Never contains a key. */
export class Misused extends PaybellError {
  readonly code = "misused";
  readonly reason: MisusedReason;
  readonly remedy: string;

  /** @internal `where`: the argument or option. `meaning`, `remedy`: more exact ones, if known. */
  constructor(reason: MisusedReason, where = "", { meaning = "", remedy = "" } = {}) {
    const [usualMeaning, usualRemedy] = misuses[reason];
    const what = remedy || usualRemedy;
    super(`${`${where} ${meaning || usualMeaning}`.trim()}. ${what}`);
    this.reason = reason;
    this.remedy = what;
  }

  override get name(): string {
    return "Misused";
  }
}

/** @throws Misused naming the unknown option, and the known ones */
export function checkNames(where: string, given: object, known: readonly string[]): void {
  const unknown = Object.keys(given).find((name) => !known.includes(name));
  if (unknown === undefined) return;
  throw new Misused("unknown_option", where + unknown, { remedy: `There are ${known.join(", ")}.` });
}

import {
  type Cipher,
  ciphers,
  defaultSealing,
  defaultSigning,
  type Encoding,
  encodings,
  type Signing,
  signingProblems,
} from "@paybell/contract";
import type { Keys } from "./keys.ts";

/**
 * How far webhook-timestamp may lie from this machine's clock, in either direction, unless `freshnessSeconds` says
 * otherwise.
 */
export const freshnessSecondsDefault = 300;

/** The longest body that is read. A settlement of 50,000 transactions has about 5 MB. */
export const bodyBytesMax = 16 * 1024 * 1024;

export interface ReceiverOptions {
  readonly encryptionKey: Keys;
  readonly signingKey: Keys;
  readonly webhookSecret: Keys;
  /** As registered; default aes-256-gcm. */
  readonly cipher?: Cipher;
  /** Of aes-256-gcm and aes-256-cbc, as registered; default base64. */
  readonly encoding?: Encoding;
  /** What the IPN's own signature covers, as registered; default the specification's fields (section 5.1). */
  readonly signing?: Signing;
  /** Seconds, 1 to 86,400; default 300. */
  readonly freshnessSeconds?: number;
  /**
   * Accepts an IPN that has none of the webhook-… headers, for a proxy that removes them. Nothing then tells a replay
   * from a first delivery: deduplicate by the IPN's id. Headers that are there must still be right. With aes-256-cbc
   * only where the whole IPN is signed.
   */
  readonly allowMissingHeaders?: boolean;
  /** Milliseconds since 1970; default the machine's clock. */
  readonly clock?: { nowMs(): number };
}

type Settings = Required<Omit<ReceiverOptions, "encryptionKey" | "signingKey" | "webhookSecret">>;

const optionNames: Readonly<Record<keyof ReceiverOptions, true>> = {
  encryptionKey: true,
  signingKey: true,
  webhookSecret: true,
  cipher: true,
  encoding: true,
  signing: true,
  freshnessSeconds: true,
  allowMissingHeaders: true,
  clock: true,
};

/** @throws TypeError naming the option, the mistake and the remedy. */
export function readSettings(options: ReceiverOptions): Settings {
  for (const name of Object.keys(options)) {
    if (!Object.hasOwn(optionNames, name))
      throw new TypeError(`${name} is no option: there are ${Object.keys(optionNames).join(", ")}.`);
  }
  const settings: Settings = {
    cipher: options.cipher ?? defaultSealing.cipher,
    encoding: options.encoding ?? defaultSealing.encoding,
    signing: options.signing ?? defaultSigning,
    freshnessSeconds: options.freshnessSeconds ?? freshnessSecondsDefault,
    allowMissingHeaders: options.allowMissingHeaders ?? false,
    clock: options.clock ?? { nowMs: () => Date.now() },
  };
  const problem = problemOf(settings);
  if (problem !== undefined) throw new TypeError(problem);
  return settings;
}

function problemOf(settings: Settings): string | undefined {
  const { cipher, encoding, signing, freshnessSeconds, allowMissingHeaders } = settings;
  if (!ciphers.includes(cipher)) return `cipher must be one of ${ciphers.join(", ")}.`;
  if (!encodings.includes(encoding)) return `encoding must be one of ${encodings.join(", ")}.`;
  const [signingProblem] = signingProblems(signing);
  if (signingProblem !== undefined) return `${signingProblem}.`;
  if (!Number.isInteger(freshnessSeconds) || freshnessSeconds < 1 || freshnessSeconds > 86_400)
    return "freshnessSeconds must be a whole number from 1 to 86,400.";
  if (typeof allowMissingHeaders !== "boolean") return "allowMissingHeaders must be true or false.";
  if (allowMissingHeaders && cipher === "aes-256-cbc" && signing.mode !== "whole")
    return (
      'allowMissingHeaders cannot be used with aes-256-cbc unless signing is { mode: "whole" }: nothing would ' +
      "protect the fields that are not signed. Use aes-256-gcm or jwe, or sign the whole IPN."
    );
  return undefined;
}

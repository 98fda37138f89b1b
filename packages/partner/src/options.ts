import {
  type Cipher,
  ciphers,
  defaultSealing,
  defaultSigning,
  type Encoding,
  encodings,
  type FieldSet,
  fieldSets,
  type Signing,
  signingProblems,
} from "@paybell/contract/receiving";
import type { Keys } from "./keys.ts";
import { checkNames, Misused } from "./misused.ts";
import { type AddressList, addressList } from "./source-addresses.ts";

/**
 * The maximum difference between webhook-timestamp and this machine's clock, in either direction, unless
 * `freshnessSeconds` says otherwise.
 */
export const freshnessSecondsDefault = 300;

/** The longest body that is accepted. A settlement of 50,000 transactions has about 5 MB. */
export const bodyBytesMax = 16 * 1024 * 1024;

export interface ReceiverOptions {
  readonly encryptionKey: Keys;
  readonly signingKey: Keys;
  readonly webhookSecret: Keys;
  /** As registered; default aes-256-gcm. */
  readonly cipher?: Cipher;
  /** For aes-256-gcm and aes-256-cbc, as registered; default base64. */
  readonly encoding?: Encoding;
  /** The coverage of the IPN's own signature, as registered; default the specification's fields (section 5.1). */
  readonly signing?: Signing;
  /**
   * The fields of the IPNs, as registered: `extended` ones also say their command. Both, as a list, while that changes.
   * Default the specification's. This option decides, and never the presence of a field.
   */
  readonly fields?: FieldSet | readonly FieldSet[];
  /** Seconds, 1 to 86,400; default 300. */
  readonly freshnessSeconds?: number;
  /**
   * Accepts an IPN that has none of the webhook-… headers, for a proxy that removes them. A replay then looks like a
   * first delivery: deduplicate by the IPN's id. Headers that are present must still be valid. With aes-256-cbc only if
   * the whole IPN is signed.
   */
  readonly allowMissingHeaders?: boolean;
  /**
   * Paybell's egress addresses (GET /v1/self, `egressAddresses`): addresses and CIDR blocks, IPv4 and IPv6. An IPN from
   * any other address is refused. Default: any address, because the signature authenticates the sender.
   */
  readonly sourceAddresses?: readonly string[];
  /**
   * Your own proxies, in the same form. X-Forwarded-For is read from its end, as long as one of these wrote the entry.
   */
  readonly trustedProxies?: readonly string[];
  /** Milliseconds since 1970; default the machine's clock. */
  readonly clock?: { nowMs(): number };
}

type Named = "encryptionKey" | "signingKey" | "webhookSecret" | "sourceAddresses" | "trustedProxies";

interface Settings extends Required<Omit<ReceiverOptions, Named | "fields">> {
  readonly fields: readonly FieldSet[];
  readonly sourceAddresses: AddressList | undefined;
  readonly trustedProxies: AddressList;
}

const optionNames = [
  "encryptionKey",
  "signingKey",
  "webhookSecret",
  "cipher",
  "encoding",
  "signing",
  "fields",
  "freshnessSeconds",
  "allowMissingHeaders",
  "sourceAddresses",
  "trustedProxies",
  "clock",
] as const satisfies readonly (keyof ReceiverOptions)[];

/** @throws Misused naming the option, the mistake and the remedy. */
export function readSettings(options: ReceiverOptions): Settings {
  if (Object(options) !== options) throw new Misused("no_options", "receiver()");
  checkNames("", options, optionNames);
  const { sourceAddresses, trustedProxies = [] } = options;
  const settings: Settings = {
    cipher: options.cipher ?? defaultSealing.cipher,
    encoding: options.encoding ?? defaultSealing.encoding,
    signing: options.signing ?? defaultSigning,
    fields: [options.fields ?? "specification"].flat(),
    freshnessSeconds: options.freshnessSeconds ?? freshnessSecondsDefault,
    allowMissingHeaders: options.allowMissingHeaders ?? false,
    sourceAddresses: sourceAddresses === undefined ? undefined : addressList("sourceAddresses", sourceAddresses),
    trustedProxies: addressList("trustedProxies", trustedProxies),
    clock: options.clock ?? { nowMs: () => Date.now() },
  };
  const problem = problemOf(settings);
  if (problem !== undefined) throw new Misused("wrong_option", "", { meaning: problem });
  const { allowMissingHeaders, cipher, signing } = settings;
  if (allowMissingHeaders && cipher === "aes-256-cbc" && signing.mode !== "whole")
    throw new Misused("headers_given_up");
  return settings;
}

function problemOf({
  cipher,
  encoding,
  signing,
  fields,
  freshnessSeconds,
  allowMissingHeaders,
  sourceAddresses,
  trustedProxies,
  clock,
}: Settings): string | undefined {
  const [signingProblem] = signingProblems(signing, fields.includes("extended") ? "extended" : "specification");
  const rules: readonly [kept: boolean, problem: string | undefined][] = [
    [ciphers.includes(cipher), `cipher must be one of ${ciphers.join(", ")}`],
    [encodings.includes(encoding), `encoding must be one of ${encodings.join(", ")}`],
    [
      fields.length > 0 && fields.every((one) => fieldSets.includes(one)),
      `fields must be one of ${fieldSets.join(", ")}, or a list of both`,
    ],
    [signingProblem === undefined, signingProblem],
    [
      Number.isInteger(freshnessSeconds) && freshnessSeconds >= 1 && freshnessSeconds <= 86_400,
      "freshnessSeconds must be a whole number from 1 to 86,400",
    ],
    [typeof allowMissingHeaders === "boolean", "allowMissingHeaders must be true or false"],
    [typeof clock.nowMs === "function", "clock must be { nowMs() }"],
    [sourceAddresses?.length !== 0, "sourceAddresses is empty, so that everything would be refused"],
    [
      sourceAddresses !== undefined || trustedProxies.length === 0,
      "trustedProxies says nothing without sourceAddresses",
    ],
  ];
  return rules.find(([kept]) => !kept)?.[1];
}

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
import { checkNames, Misused } from "../errors/misused.ts";
import type { Keys } from "./keys.ts";
import { type AddressList, addressList } from "./source-addresses.ts";

/**
 * The default of `freshnessSeconds`.
 */
export const freshnessSecondsDefault = 300;

/** The longest accepted body. 50,000 settled transactions have 5 MB. */
export const bodyBytesMax = 16 * 1024 * 1024;

export interface ReceiverOptions {
  readonly encryptionKey: Keys;
  readonly signingKey: Keys;
  readonly webhookSecret: Keys;
  /** As registered; default aes-256-gcm. */
  readonly cipher?: Cipher;
  /** For aes-256-gcm and aes-256-cbc, as registered; default base64. */
  readonly encoding?: Encoding;
  /** The coverage of the IPN's own signature, as registered; default section 5.1's fields. */
  readonly signing?: Signing;
  /**
   * As registered; `extended` IPNs say their command. A list of both while that changes. Default `specification`.
   */
  readonly fields?: FieldSet | readonly FieldSet[];
  /** Seconds that webhook-timestamp may differ from the clock: 1 to 86,400; default 300. */
  readonly freshnessSeconds?: number;
  /**
   * Accepts an IPN without any webhook-… header, for a proxy that removes them. Then deduplicate by the IPN's id: a
   * replay looks new. With aes-256-cbc only if the whole IPN is signed.
   */
  readonly allowMissingHeaders?: boolean;
  /**
   * Paybell's egress addresses (GET /v1/self, `egressAddresses`), as IPs and CIDR blocks; others are refused. Default:
   * any.
   */
  readonly sourceAddresses?: readonly string[];
  /**
   * Your own proxies, in the same form: their X-Forwarded-For counts.
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

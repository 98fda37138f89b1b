import { randomBytes } from "node:crypto";
import { gzipSync } from "node:zlib";
import { webhookKey, webhookSignature } from "@paybell/contract";
import { describe, expect, it } from "vitest";
import { type MisusedReason, misuses } from "../errors/misused.ts";
import { type RefusedReason, refusals } from "../errors/refused.ts";
import {
  deduplicate,
  IpnRefused,
  Misused,
  memoryStore,
  PaybellError,
  type ReceiverOptions,
  receiver,
} from "../index.ts";
import { nodeHandler } from "../node.ts";
import { type TestDelivery, testDelivery, testEnvelope } from "../testing.ts";

const raw = Buffer.from("fbf0a1b2c3d4e5f60718293a4b5c6d7e8f90a1b2c3d4e5f60718293a4b5c6d7e", "hex");
const key = () => randomBytes(32).toString("base64");
const nowMs = 1_800_000_000_000;

interface TextKeys extends ReceiverOptions {
  readonly encryptionKey: string;
  readonly signingKey: string;
  readonly webhookSecret: string;
}
const keys = (): TextKeys => ({
  encryptionKey: key(),
  signingKey: key(),
  webhookSecret: `whsec_${key()}`,
  clock: { nowMs: () => nowMs },
});

function thrown(act: () => unknown): IpnRefused | Misused {
  try {
    act();
  } catch (error) {
    if (error instanceof IpnRefused || error instanceof Misused) return error;
    throw error;
  }
  throw new Error("It was accepted.");
}

type OwnMistake = readonly [what: string, reason: MisusedReason, act: () => unknown, says: RegExp];

const made = (change: Record<string, unknown>) => () => receiver({ ...keys(), ...change } as ReceiverOptions);
const opened = (body: unknown, headers: unknown) => () => receiver(keys()).open(body as string, headers as Headers);
const text = raw.toString("base64");

const wrongKeys: readonly (readonly [what: string, reason: MisusedReason, value: unknown, says: RegExp])[] = [
  ["a missing key", "missing_key", undefined, /is missing.*environment variable set/],
  ["an empty key", "empty_key", "", /is empty.*environment variable set/],
  ["a key in hexadecimal", "hexadecimal_key", raw.toString("hex"), /is hexadecimal.*Buffer\.from/],
  [
    "base64 of hexadecimal text",
    "key_encoded_twice",
    Buffer.from(raw.toString("hex")).toString("base64"),
    /encoded twice.*Decode it once/,
  ],
  ["base64 of base64", "key_encoded_twice", Buffer.from(text).toString("base64"), /encoded twice/],
  ["a key in base64url", "base64url_key", raw.toString("base64url"), /base64url/],
  ["a key without its padding", "base64url_key", text.slice(0, -1), /padding/],
  ["a key with a line end", "white_space_in_key", `${text}\n`, /white space.*line end/],
  ["a key that is too short", "key_length", raw.subarray(16).toString("base64"), /has 16 bytes instead of 32/],
  ["a passphrase for a key", "key_not_base64", "correct horse battery staple", /is not base64/],
  ["base64 of a word", "key_length", "YWJjZA==", /has 4 bytes instead of 32/],
  ["only marks", "key_not_base64", "********", /is not base64/],
  ["a webhook secret for a key", "webhook_secret_as_key", `whsec_${text}`, /Set it as webhookSecret/],
  ["an API key for a key", "api_key_as_key", `pb_${raw.toString("base64url")}`, /is an API key/],
  ["an empty list of versions", "no_key_version", [], /is an empty list/],
  ["a number for a key", "key_not_text", 7, /neither a string nor a list/],
  ["versions without their objects", "key_not_text", [text], /\[0\]\.key is neither a string/],
  ["a key that is still a Promise", "missing_await", Promise.resolve(text), /is a Promise.*await/],
  ["that of a version", "missing_await", [{ id: "1", key: Promise.resolve(text) }], /\[0\]\.key is a Promise/],
];

const ownMistakes: readonly OwnMistake[] = [
  ...["encryptionKey", "signingKey"].flatMap((option) =>
    wrongKeys.map(
      ([what, reason, value, says]): OwnMistake => [
        `${option}: ${what}`,
        reason,
        made({ [option]: value }),
        new RegExp(`^${option}.*${says.source}`),
      ],
    ),
  ),
  ["a webhook secret without whsec_", "no_whsec_prefix", made({ webhookSecret: text }), /whsec_.*swapped/],
  ["whsec_ twice", "two_whsec_prefixes", made({ webhookSecret: `whsec_whsec_${text}` }), /twice/],
  [
    "a webhook secret in hexadecimal",
    "hexadecimal_key",
    made({ webhookSecret: `whsec_${raw.toString("hex")}` }),
    /hexa/,
  ],
  ["a webhook secret with a line end", "white_space_in_key", made({ webhookSecret: `whsec_${text}\n` }), /line end/],
  ["an empty webhook secret", "empty_key", made({ webhookSecret: "" }), /environment variable/],
  [
    "one key for two",
    "shared_key",
    made({ encryptionKey: text, signingKey: text }),
    /same key as encryptionKey.*pasted/,
  ],
  [
    "one key for two, behind whsec_",
    "shared_key",
    made({ signingKey: [{ key: text }], webhookSecret: `whsec_${text}` }),
    /webhookSecret is the same key as signingKey/,
  ],
  [
    "a name that is no option",
    "unknown_option",
    made({ freshnessSecond: 9 }),
    /freshnessSecond is no.*freshnessSeconds/,
  ],
  ["no freshness", "wrong_option", made({ freshnessSeconds: 0 }), /freshnessSeconds must be/],
  ["endless freshness", "wrong_option", made({ freshnessSeconds: Number.POSITIVE_INFINITY }), /freshnessSeconds/],
  ["freshness of more than a day", "wrong_option", made({ freshnessSeconds: 86_401 }), /freshnessSeconds must be/],
  ["freshness that is no number", "wrong_option", made({ freshnessSeconds: Number.NaN }), /freshnessSeconds must be/],
  ["ECB", "wrong_option", made({ cipher: "aes-256-ecb" }), /cipher must be one of/],
  ["an encoding that is none", "wrong_option", made({ encoding: "utf8" }), /encoding must be one of/],
  [
    "a signing list that is too short",
    "wrong_option",
    made({ signing: { mode: "fields", card: ["amount"] } }),
    /hold id/,
  ],
  ["a word for true", "wrong_option", made({ allowMissingHeaders: "no" }), /true or false/],
  [
    "no headers with aes-256-cbc",
    "headers_given_up",
    made({ allowMissingHeaders: true, cipher: "aes-256-cbc" }),
    /whole.*nothing would protect/,
  ],
  ["a host name for an address", "no_address", made({ sourceAddresses: ["paybell.example"] }), /sourceAddresses\[0\]/],
  ["one address without its list", "no_address", made({ sourceAddresses: "192.0.2.1" }), /sourceAddresses is no/],
  ["no source address at all", "wrong_option", made({ sourceAddresses: [] }), /everything would be refused/],
  ["trusted proxies alone", "wrong_option", made({ trustedProxies: ["10.0.0.1"] }), /without sourceAddresses/],
  ["a parsed body", "not_raw", opened({ data: "…" }, {}), /raw body.*before the parser/],
  ["no body", "not_raw", opened(undefined, {}), /raw body/],
  ["a body that is still a Promise", "missing_await", opened(Promise.resolve(""), {}), /is a Promise.*await/],
  ["headers that are still a Promise", "missing_await", opened("", Promise.resolve({})), /headers.*is a Promise/],
  ["no headers given", "no_headers", opened("", undefined), /second argument/],
  ["options for a receiver", "no_receiver", () => nodeHandler(keys() as never, () => undefined), /receiver\(\{/],
  [
    "a receiver that is still a Promise",
    "missing_await",
    () => nodeHandler(Promise.resolve(receiver(keys())) as never, () => undefined),
    /first argument is a Promise.*await/,
  ],
  ["no options", "no_options", () => receiver(undefined as never), /receiver\(\) has no options/],
  [
    "null for a handler's options",
    "no_options",
    () => nodeHandler(receiver(keys()), () => undefined, null as never),
    /handler has no options/,
  ],
  [
    "no function",
    "no_function",
    () => nodeHandler(receiver(keys()), undefined as never),
    /handler was given no function/,
  ],
  ["no function for once", "no_function", () => deduplicate(memoryStore())(undefined as never), /no function/],
  [
    "deduplicate() for a handler, its function beside the store",
    "no_function",
    () => deduplicate(...([memoryStore(), () => undefined] as unknown as [never]))({ kind: "card" } as never),
    /deduplicate\(store\)\(…\) was given no function/,
  ],
  ["no store", "no_store", () => deduplicate(undefined as never), /deduplicate\(\).*memoryStore/],
  ["a store that is still a Promise", "missing_await", () => deduplicate(Promise.resolve() as never), /await/],
  ["a clock that is a function", "wrong_option", made({ clock: Date.now }), /clock must be \{ nowMs\(\) \}/],
];

describe("a mistake of the developer", () => {
  it.each(ownMistakes)("%s is reported: %s", (_what, reason, act, says) => {
    const error = thrown(act);
    expect(error).toBeInstanceOf(Misused);
    expect(error).toBeInstanceOf(PaybellError);
    expect([error.code, error.reason]).toEqual(["misused", reason]);
    expect(error.message).toMatch(says);
    expect(error.message).toContain(error.remedy);
    for (const secret of [text, raw.toString("hex"), raw.toString("base64url")])
      expect(error.message).not.toContain(secret.slice(0, 12));
  });

  it("is in the table, every one", () => {
    const seen = new Set<string>(ownMistakes.map(([, reason]) => reason));
    // Reported by the handlers, reconcile, the client and the stores, and tested there.
    for (const reason of ["body_already_read", "no_amount", "no_id"]) seen.add(reason);
    expect([...seen].sort()).toEqual(Object.keys(misuses).sort());
  });
});

type Refusal = readonly [what: string, reason: RefusedReason, options: ReceiverOptions, TestDelivery, hint: RegExp];

function refusalsOf(): readonly Refusal[] {
  const mine = keys();
  const other = keys();
  const good = testDelivery(mine, { kind: "card" });
  const sent = (change: Partial<ReceiverOptions>) => testDelivery({ ...mine, ...change }, { kind: "card" });
  const at = (seconds: number) => sent({ clock: { nowMs: () => nowMs + seconds * 1000 } });
  const withBody = (body: string) => ({ body, headers: good.headers });
  const set = (change: Partial<ReceiverOptions>): ReceiverOptions => ({ ...mine, ...change });
  const bare = (secret: string) => secret.slice("whsec_".length);
  const whole = { mode: "whole" } as const;
  const list = { mode: "fields", card: ["id", "transaction_type", "status", "amount"] } as const;
  return [
    ["another encryption key", "decryption", mine, sent({ encryptionKey: [{ id: "v2", key: key() }] }), /version "v2"/],
    ["another signing key", "signature", mine, sent({ signingKey: key() }), /signingKey.*GET \/v1\/self/],
    [
      "another webhook secret",
      "webhook_signature",
      mine,
      sent({ webhookSecret: other.webhookSecret }),
      /webhookSecret/,
    ],
    [
      "encryptionKey and signingKey swapped",
      "swapped_keys",
      set({ encryptionKey: mine.signingKey, signingKey: mine.encryptionKey }),
      good,
      /opens with what you gave as signingKey/,
    ],
    [
      "signingKey and webhookSecret swapped",
      "swapped_keys",
      set({ signingKey: bare(mine.webhookSecret), webhookSecret: `whsec_${mine.signingKey}` }),
      good,
      /made with what you gave as signingKey/,
    ],
    [
      "encryptionKey and webhookSecret swapped",
      "swapped_keys",
      set({ encryptionKey: bare(mine.webhookSecret), webhookSecret: `whsec_${mine.encryptionKey}` }),
      good,
      /made with what you gave as encryptionKey/,
    ],
    ["a clock that is ahead", "not_fresh", mine, at(-431), /431 s in the past.*300 s are allowed.*NTP/],
    ["a clock that is behind", "not_fresh", mine, at(431), /431 s in the future.*NTP/],
    ["aes-256-cbc sent", "wrong_cipher", mine, sent({ cipher: "aes-256-cbc" }), /sealed with aes-256-cbc/],
    ["jwe sent", "wrong_cipher", mine, sent({ cipher: "jwe" }), /sealed with jwe/],
    ["aes-256-gcm sent where jwe is set", "wrong_cipher", set({ cipher: "jwe" }), good, /cipher is jwe/],
    ["base64url sent", "wrong_encoding", mine, sent({ encoding: "base64url" }), /data is base64url/],
    ["hex sent", "wrong_encoding", mine, sent({ encoding: "hex" }), /encoding is base64, and data is hex/],
    ["the whole IPN signed", "wrong_signing", mine, sent({ signing: whole }), /mode: "whole"/],
    ["an extended IPN", "wrong_fields", mine, sent({ fields: "extended" }), /as fields: "extended" says.*accept both/],
    ["the specification's fields", "wrong_fields", set({ fields: "extended" }), good, /"specification" says/],
    ["the usual fields signed", "wrong_signing", set({ signing: list }), good, /mode: "fields"/],
    ["another list of fields", "signature", mine, sent({ signing: list }), /mode and field lists/],
    [
      "a body parsed and written again",
      "rewritten_body",
      mine,
      withBody(good.body.replace(":", ": ")),
      /before the JSON/,
    ],
    [
      "a body that PHP wrote again",
      "rewritten_body",
      mine,
      withBody(good.body.includes("/") ? good.body.replaceAll("/", "\\/") : ` ${good.body}`),
      /parsed and re-serialised/,
    ],
    ["String(body)", "stringified_body", mine, withBody("[object Object]"), /String\(body\)/],
    ["JSON.stringify(text)", "stringified_body", mine, withBody(JSON.stringify(good.body)), /string within a string/],
    ["a web page", "html_body", mine, withBody("\n<!doctype html><title>502</title>"), /web page/],
    ["an empty body", "empty_body", mine, withBody(""), /is empty/],
    ["no header at all", "missing_headers", mine, { body: good.body, headers: {} }, /Let your proxy pass them/],
    ["no IPN, signed", "envelope", mine, signedAgain(mine, "data=1"), /one field "data"/],
    ["too much", "too_large", mine, withBody("x".repeat(16 * 1024 * 1024 + 1)), /longer than any IPN/],
    ["no cipher text", "encoding", mine, signedAgain(mine, '{"data":"%%"}'), /not in the configured encoding/],
    [
      "no JWE",
      "jwe_header",
      set({ cipher: "jwe" }),
      signedAgain(mine, `{"data":"e30..AAAAAAAAAAAAAAAA.AA.${"A".repeat(21)}A"}`),
      /alg dir/,
    ],
    [
      "a kid that is not there",
      "unknown_key",
      set({ cipher: "jwe", encryptionKey: [{ id: "v1", key: key() }] }),
      sent({ cipher: "jwe", encryptionKey: [{ id: "v2", key: key() }] }),
      /version "v2"/,
    ],
    ["bytes", "not_json", mine, testEnvelope(mine, "\u0000"), /not a JSON/],
    ["a key twice", "duplicate_key", mine, testEnvelope(mine, '{"id":"1","id":"2"}'), /duplicate/],
    ["both names", "two_names", mine, testEnvelope(mine, '{"deviceId":"1","device_id":"1"}'), /both of its names/],
    ["a number", "wrong_type", mine, testEnvelope(mine, '{"amount":1}'), /not a string/],
    ["from elsewhere", "source_address", set({ sourceAddresses: ["192.0.2.1"] }), good, /trustedProxies/],
  ];
}

/** With a valid webhook-signature: the same as no sender but Paybell could send. */
function signedAgain(options: ReceiverOptions, body: string): TestDelivery {
  const { headers } = testEnvelope(options, "{}");
  const id = headers["webhook-id"] ?? "";
  const timestampS = Number(headers["webhook-timestamp"]);
  const signature = webhookSignature(id, timestampS, body, webhookKey(options.webhookSecret as string));
  return { body, headers: { ...headers, "webhook-signature": signature } };
}

describe("a mistake that only an IPN reveals", () => {
  const cases = refusalsOf();

  it.each(cases)("%s is reported in the log: %s", (_what, reason, options, { body, headers }, says) => {
    const error = thrown(() => receiver(options).open(body, headers, "198.51.100.1"));
    expect(error).toBeInstanceOf(IpnRefused);
    expect([error.code, error.message, error.reason]).toEqual(["not_authentic", "The IPN is not authentic.", reason]);
    const { hint } = error as IpnRefused;
    expect(hint).toMatch(says);
    expect(hint).toContain(error.remedy);
    for (const secret of [options.encryptionKey, options.signingKey, options.webhookSecret])
      if (typeof secret === "string") expect(hint).not.toContain(secret.slice(0, 12));
  });

  it("is reported for a body written again in any way, and not looked for in a body that cannot be one", () => {
    const options = keys();
    const { body, headers } = testDelivery(options, { kind: "card" });
    const reasonOf = (text: string) => thrown(() => receiver(options).open(text, headers)).reason;
    const { data } = JSON.parse(body) as { data: string };
    const last = `\\u00${data.charCodeAt(data.length - 1).toString(16)}`;
    const escaped = `{"data":"${data.slice(0, -1)}${last}"}`;
    for (const rewritten of [`${body}\n`, `\ufeff${body}`, JSON.stringify({ data }, null, 2), escaped])
      expect(reasonOf(rewritten)).toBe("rewritten_body");
    for (const other of [`{"data":"${data}","more":"1"}`, `[${body}]`, `{"data":"${data}`, `{"data":"\\"}`])
      expect(reasonOf(other)).toBe("webhook_signature");
  });

  it("is reported for a compressed body", () => {
    const options = keys();
    const { body, headers } = testDelivery(options, { kind: "card" });
    expect(thrown(() => receiver(options).open(gzipSync(body), headers)).reason).toBe("compressed_body");
    const proxied: ReceiverOptions = { ...options, allowMissingHeaders: true };
    expect(thrown(() => receiver(proxied).open(gzipSync(body), {})).reason).toBe("compressed_body");
  });

  it("is reported for a missing source address", () => {
    const options: ReceiverOptions = { ...keys(), sourceAddresses: ["192.0.2.1"] };
    const { body, headers } = testDelivery(options, { kind: "card" });
    expect(thrown(() => receiver(options).open(body, headers)).reason).toBe("source_unknown");
  });

  it("is in the table, every one", () => {
    const seen = new Set<string>(cases.map(([, reason]) => reason));
    // In the tests above. not_text needs bytes that only the contract's own vectors contain.
    for (const reason of ["compressed_body", "source_unknown", "not_text"]) seen.add(reason);
    expect([...seen].sort()).toEqual(Object.keys(refusals).sort());
  });

  it("is not looked for if the sender proved nothing, which costs only a few signatures", () => {
    const mine = keys();
    const swapped: ReceiverOptions = {
      ...mine,
      encryptionKey: mine.signingKey,
      signingKey: mine.encryptionKey,
      allowMissingHeaders: true,
    };
    const { body } = testDelivery(mine, { kind: "card" });
    expect(thrown(() => receiver(swapped).open(body, {})).reason).toBe("decryption");
  });
});

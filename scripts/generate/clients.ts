import { cardSigningOrder, ciphers, encodings, fieldSets, sealings, settlementSigningOrder } from "@paybell/contract";
import { deliveryVectors, extendedVectors } from "../../packages/contract/scripts/vectors/deliveries.ts";
import {
  type Column,
  cardColumns,
  extensionColumns,
  settlementColumns,
  settlementListColumns,
} from "../../packages/contract/src/fields/columns.ts";
import { cursorRemedies } from "../../packages/partner/src/client/catch-up.ts";
import { misuses } from "../../packages/partner/src/errors/misused.ts";
import { refusals } from "../../packages/partner/src/errors/refused.ts";
import { freshnessSecondsDefault } from "../../packages/partner/src/receiver/options.ts";
import { type SampleIpn, sampleIpn, sampleKeys } from "../../packages/partner/src/testing.ts";
import type { GeneratedFile } from "./document.ts";

/** The fields that a partner with `fields: "extended"` is sent in addition, in the order in which they are signed. */
const extended = {
  card: extensionColumns.card.map(({ name }) => name),
  settlement: extensionColumns.settlement.map(({ name }) => name),
};

/** The mistakes in a key, in words that hold in every language. */
const keyMistakes = [
  "missing_key",
  "empty_key",
  "no_key_version",
  "key_not_base64",
  "key_length",
  "no_whsec_prefix",
  "shared_key",
] as const;

function mistake(code: string, finding: string, remedy: string) {
  return [code, { finding, remedy, refused: false }] as const;
}

const knownKeys = {
  encryptionKey: Buffer.alloc(32, 1).toString("base64"),
  signingKey: Buffer.alloc(32, 2).toString("base64"),
  webhookSecret: `whsec_${Buffer.alloc(32, 3).toString("base64")}`,
};

const anything = "(?s).+";

/** In the syntax that the regular expressions of all languages share. */
function keyOf(prefix: string) {
  const base64 = "([A-Za-z0-9+/]{4})*([A-Za-z0-9+/][AQgw]==|[A-Za-z0-9+/]{2}[AEIMQUYcgkosw048]=)?";
  return { key_not_base64: `${prefix}${base64}`, key_length: `${prefix}.{43}=` };
}

const kinds: Readonly<Record<string, SampleIpn>> = {
  sale: {},
  decline: { declined: "51" },
  void: { command: "VOID" },
  preauth: { command: "PREAUTH" },
  preauth_complete: { command: "PREAUTH_COMPLETE" },
  cancel: { command: "VOID", ipn: { transaction_type: "CANCEL" } },
  refund: { command: "REFUND" },
  settlement: { command: "SETTLEMENT" },
};

/**
 * The contract as the packages in other languages read it: one table for all of them. What none of them should write
 * again is in it: the settings, the texts of the errors, what is tried with a body that does not open, the samples.
 */
export function clientContracts(): GeneratedFile[] {
  const text = `${JSON.stringify(contract(), undefined, 2).replace(listOfStrings, inOneLine)}\n`;
  const homes = ["python/src/paybell", "go", "php/src", "java/src/main/resources/example/paybell"];
  return homes.map((home) => ({ path: `clients/${home}/contract.json`, text }));
}

const listOfStrings = /\[(?:\s+"(?:[^"\\]|\\.)*",?)+\s+\]/g;

function inOneLine(list: string): string {
  return `[${list.slice(1, -1).trim().replaceAll(/\n\s+/g, " ")}]`;
}

function contract() {
  const named = (columns: readonly Column[]) =>
    columns.map(({ name, alias }) => (alias === undefined ? [name] : [name, alias]));
  const table = (columns: readonly Column[], signed: readonly string[], added: readonly string[]) => ({
    extended: { fields: [...named(columns), ...added.map((name) => [name])], signed: [...signed, ...added], added },
    specification: { fields: named(columns), signed, added: [] },
  });
  return {
    // By kind and by the setting `fields`. `signed` is the list without another agreement; `added` follows any other.
    tables: {
      card: table(cardColumns, cardSigningOrder, extended.card),
      settlement: table(settlementColumns, settlementSigningOrder, extended.settlement),
    },
    entry: named(settlementListColumns),
    defaults: {
      cipher: "aes-256-gcm",
      encoding: "base64",
      signing: { mode: "fields" },
      fields: ["specification"],
      baseUrl: "",
      apiKey: "",
    },
    // In fields, the setting that says more of an IPN is the first.
    settings: { cipher: ciphers, encoding: encodings, signing: ["fields", "whole"], fields: fieldSets.toReversed() },
    // What a package knows more goes before the finding: of a mistake in a key, which key.
    errors: Object.fromEntries([
      ...Object.entries(refusals).map(([code, [finding, remedy]]) => [code, { finding, remedy, refused: true }]),
      ...keyMistakes.map((code) => mistake(code, `${misuses[code][0]}.`, misuses[code][1])),
      mistake("wrong_option", "", "Compare it with GET /v1/self and the page on packages."),
      mistake("no_answer", "The connection failed.", "Check baseUrl, and try again."),
      mistake("not_paybell", "The answer is not one of Paybell's.", "Check baseUrl."),
      ...Object.entries(cursorRemedies).map(([code, remedy]) => mistake(code, "", remedy)),
    ]),
    // What a key must match as a whole: the first pattern that it does not match is its mistake.
    keys: {
      encryptionKey: { missing_key: anything, ...keyOf("") },
      signingKey: { missing_key: anything, ...keyOf("") },
      webhookSecret: { missing_key: anything, no_whsec_prefix: "whsec_.*", ...keyOf("whsec_") },
    },
    // How a body begins that a framework, a proxy or something else than Paybell has made, after white space. U+001F is
    // the first byte of gzip.
    starts: {
      "\x1f": "compressed_body",
      "<": "html_body",
      "[object ": "stringified_body",
      '"': "stringified_body",
    },
    tries: {
      // Of what was decrypted, but is not signed as expected: who may have signed it, and how.
      signature: [
        ...fieldSets.map((fields) => ({ code: "wrong_fields", fields: [fields] })),
        ...["whole", "fields"].map((mode) => ({ code: "wrong_signing", signing: { mode }, fields: [...fieldSets] })),
        { code: "swapped_keys", keys: { signingKey: ["encryptionKey", "webhookSecret"] } },
      ],
      // Of any other body: what decrypts it.
      body: [
        ...encodings.map((encoding) => ({ code: "wrong_encoding", encoding })),
        ...sealings.map((sealing) => ({ code: "wrong_cipher", ...sealing })),
        { code: "swapped_keys", keys: { encryptionKey: ["signingKey", "webhookSecret"] } },
      ],
    },
    sampleKeys: knownKeys,
    samples: Object.fromEntries(Object.entries(kinds).map(([kind, what]) => [kind, sample(what)])),
  };
}

/**
 * With the extended fields. Without what each sample has of its own: `id` and `reqId` are made where the sample is used.
 */
function sample(what: SampleIpn) {
  const clock = { nowMs: () => Date.UTC(2026, 0, 2, 3, 4, 5) };
  const { received } = sampleIpn(what, { ...sampleKeys, clock });
  const { signature: _, ...ipn } = { ...received.ipn, id: "", reqId: "" };
  const list = "settlementList" in ipn ? { settlementList: [{ reqId: "", refNo: "432198765432" }] } : {};
  const { command, originalTransactionId } = received.headers;
  const originalId = originalTransactionId && "1fd1e17a-5f3c-4d0c-9a39-7e0f1d5f6a11";
  const more: Record<string, string | undefined> = { command, currency: "VND", originalId };
  const added = Object.fromEntries(extended[received.kind].map((name) => [name, more[name] ?? ""]));
  return {
    headers: {
      "content-type": "application/json",
      "paybell-attempt": "1",
      "paybell-command": command,
      ...(originalId && { "paybell-original-transaction": originalId }),
    },
    ipn: { ...ipn, ...list, ...added },
  };
}

const description = [
  "Test vectors for a receiver of Paybell's notifications, in any language. Generated from the code.",
  "Each entry of `vectors` is one POST with everything that a receiver knows. No entry needs another. Keys, IVs, " +
    "ids and times are fixed. The keys count up, so nobody can take them for real keys. Never encrypt with a fixed " +
    "IV.",
  "`body` is the raw body: the UTF-8 bytes of this string. `headers` are the request's, names in lower case.",
  "`nowSeconds` is the time of the receiver's clock, in seconds since 1970. webhook-timestamp may differ from it by " +
    "`freshnessSeconds` (300) at most, in either direction.",
  "`cipher`, `encoding` and `signing` are the receiver's configuration. `cipher`: aes-256-gcm, aes-256-cbc " +
    "or jwe (RFC 7516 uses base64url, so `encoding` has no meaning there). `signing`: {mode: fields} is the order " +
    "of the specification's section 5.1, or the lists in `card` and `settlement` in its place; {mode: whole} is the " +
    "RFC 8785 form of the object as sent, without its signature.",
  "`encryptionKey` ({id, key}), `signingKey` and `webhookSecret` ({key}) are the accepted versions, as in a file of " +
    "keys: each key is 32 bytes in base64; a webhook secret begins with whsec_. Several versions mean a rotation: any " +
    "of them may be the right one. `id` is the JWE's kid.",
  "`expect: accept`: the receiver must return `ipn`, whose `kind` is card or settlement: exactly these fields, " +
    "under the tables' names, missing ones as empty strings, cardScheme in upper case. `keyId` is the key that " +
    "decrypts it.",
  "`extended` has more of them, for receivers that know the setting `fields`: a list of `specification` and " +
    "`extended` (each of them is accepted), where absent the specification's alone. It decides which fields the " +
    "signature covers and `ipn` has, and the presence of a field never does.",
  "`expect: refuse`: the receiver must refuse it, always with the same answer. `why` is the reason.",
];

/** Test vectors for receivers in other languages: whole POSTs, to be accepted or refused. */
export function vectorsReference(): GeneratedFile {
  const content = {
    description,
    contract: "1",
    freshnessSeconds: freshnessSecondsDefault,
    vectors: deliveryVectors(),
    extended: extendedVectors(),
  };
  return { path: "docs/partner/vectors.json", text: `${JSON.stringify(content, undefined, 2)}\n` };
}

import { Buffer } from "node:buffer";
import {
  contractVersion,
  type FieldSet,
  fromWire,
  headerNames,
  type IpnKind,
  type Signing,
  seal,
  sealings,
  toWire,
  webhookSignature,
} from "../../src/index.ts";
import {
  type EncryptionKeyId,
  encryptionKey,
  extensions,
  fixedIv,
  headerKey,
  ipns,
  otherWebhookKey,
  otherWebhookSecret,
  type SigningKeyId,
  signedJson,
  signings,
  usual,
  type WrittenAgreement,
  webhookSecret,
  writtenKeys,
} from "./material.ts";
import { refusedVectors } from "./refused.ts";

const nowSeconds = 1717140600;
const notificationId = "018f3b1e-7c1a-7d2e-9b1a-3f6d2c5e8a03";
const bothKeys = { encryptionKeys: ["ek-1", "ek-2"], signingKeys: ["sk-1", "sk-2"] } as const;

/** The differences from a valid POST, sent two seconds ago and signed with the first webhook secret only. */
interface Posting {
  readonly timestampS?: number;
  readonly signature?: (id: string, timestampS: number, body: string) => string;
  readonly secrets?: readonly string[];
  readonly headers?: Readonly<Record<string, string | undefined>>;
}

function post(name: string, body: string, how: WrittenAgreement, kind: IpnKind, posting: Posting = {}) {
  const { timestampS = nowSeconds - 2, signature = signed, secrets = [webhookSecret] } = posting;
  const headers: Record<string, string | undefined> = {
    accept: "application/json",
    "content-type": "application/json",
    [headerNames.id]: notificationId,
    [headerNames.timestamp]: String(timestampS),
    [headerNames.signature]: signature(notificationId, timestampS, body),
    [headerNames.attempt]: "1",
    [headerNames.contract]: contractVersion,
    [headerNames.command]: kind === "card" ? "SALE" : "SETTLEMENT",
    ...posting.headers,
  };
  return {
    name,
    nowSeconds,
    cipher: how.sealing.cipher,
    encoding: how.sealing.cipher === "jwe" ? ("base64url" as const) : how.sealing.encoding,
    signing: how.signing,
    ...(how.fields && { fields: how.fields }),
    encryptionKey: how.encryptionKeys.map((id) => ({ id, key: inBase64(writtenKeys.encryptionKeys[id]) })),
    signingKey: how.signingKeys.map((id) => ({ key: inBase64(writtenKeys.signingKeys[id]) })),
    webhookSecret: secrets.map((key) => ({ key })),
    headers: Object.fromEntries(Object.entries(headers).filter(([, value]) => value !== undefined)) as Record<
      string,
      string
    >,
    body,
  };
}

/** One POST as a receiver gets it, with everything that the receiver knows, and the expected result. */
type DeliveryVector = ReturnType<typeof post> & {
  readonly expect: "accept" | "refuse";
  readonly keyId?: string;
  readonly kind?: IpnKind;
  readonly ipn?: unknown;
  readonly why?: string;
};

function inBase64(hex: string): string {
  return Buffer.from(hex, "hex").toString("base64");
}

function signed(id: string, timestampS: number, body: string): string {
  return webhookSignature(id, timestampS, body, headerKey);
}

interface Content {
  readonly how?: WrittenAgreement;
  readonly wire?: Record<string, unknown>;
  /** The fields that it is signed with; default the specification's. */
  readonly fields?: FieldSet;
  /** Changes the JSON text after it was signed. */
  readonly rewrite?: (json: string) => string;
  /** Changes the POSTed body before it is signed. */
  readonly envelope?: (body: string) => string;
  readonly keys?: readonly [EncryptionKeyId, SigningKeyId];
  readonly posting?: Posting;
}

function accepted(name: string, kind: IpnKind, content: Content = {}): DeliveryVector {
  const { how = usual, keys: [keyId, signingKeyId] = ["ek-1", "sk-1"] } = content;
  const { rewrite = asItIs, envelope = asItIs } = content;
  const { fields = "specification" } = content;
  const plain = rewrite(signedJson(kind, content.wire ?? wireOf(kind, fields), how.signing, signingKeyId, fields));
  const body = envelope(JSON.stringify({ data: seal(plain, how.sealing, encryptionKey(keyId), fixedIv) }));
  const posted = post(name, body, how, kind, content.posting);
  const headers = how.sealing.cipher === "jwe" ? posted.headers : { ...posted.headers, [headerNames.key]: keyId };
  return { expect: "accept", ...posted, headers, keyId, kind, ipn: fromWire(plain, fields).ipn };
}

function asItIs(text: string): string {
  return text;
}

function wireOf(kind: IpnKind, fields: FieldSet = "specification"): Record<string, unknown> {
  return toWire(kind, { ...ipns[kind], ...extensions[kind] }, "table", fields);
}

/**
 * Every cipher, encoding and signing agreement for both bodies. The set of names changes with each, so every agreement
 * meets both.
 */
function regular(): DeliveryVector[] {
  const agreements = Object.entries(signings);
  return (["card", "settlement"] as const).flatMap((kind) =>
    sealings.flatMap((sealing, row) =>
      agreements.map(([agreement, signing], column) => {
        const names = (row + column) % 2 === 0 ? ("table" as const) : ("sample" as const);
        const encoded = sealing.cipher === "jwe" ? "" : ` in ${sealing.encoding}`;
        const how = { ...usual, sealing, signing };
        const name = `${kind} IPN, ${sealing.cipher}${encoded}, signed: ${agreement}, ${names} names`;
        return accepted(name, kind, { how, wire: toWire(kind, ipns[kind], names) });
      }),
    ),
  );
}

function rotations(): DeliveryVector[] {
  const sealed = (["aes-256-gcm", "aes-256-cbc", "jwe"] as const).flatMap((cipher) =>
    (["ek-1", "ek-2"] as const).map((key, at) =>
      accepted(`key rotation, ${cipher}, sealed with ${key}`, "card", {
        how: { ...usual, ...bothKeys, sealing: { cipher, encoding: "base64" } },
        keys: [key, at === 0 ? "sk-2" : "sk-1"],
      }),
    ),
  );
  const second = (id: string, timestampS: number, body: string) =>
    webhookSignature(id, timestampS, body, otherWebhookKey);
  const both: Posting["signature"] = (...text) => `${second(...text)} ${signed(...text)}`;
  const secrets = [webhookSecret, otherWebhookSecret];
  return [
    ...sealed,
    accepted("webhook secret rotation: two signatures, the receiver knows the old secret alone", "card", {
      posting: { signature: both },
    }),
    accepted("webhook secret rotation: one signature, the receiver knows both secrets", "card", {
      posting: { signature: second, secrets },
    }),
    accepted("webhook-signature with an entry of a version that is not known", "card", {
      posting: { signature: (...text) => `v1a,AAAA ${signed(...text)}` },
    }),
    accepted("webhook-signature with the right entry before another", "card", {
      posting: { signature: (...text) => `${signed(...text)} ${second(...text)}` },
    }),
    accepted("webhook-signature with a space after its entry", "card", {
      posting: { signature: (...text) => `${signed(...text)} ` },
    }),
  ];
}

/** Deliveries that are unusual but valid. */
function odd(): DeliveryVector[] {
  const card = (changes: Record<string, unknown>) => ({ ...wireOf("card"), ...changes });
  const hex: WrittenAgreement = { ...usual, sealing: { cipher: "aes-256-gcm", encoding: "hex" } };
  const whole: WrittenAgreement = { ...usual, signing: signings.whole };
  const upper = (_: string, start: string, digits: string) => start + digits.toUpperCase();
  return [
    accepted("an envelope with white space", "card", {
      envelope: (body) => body.replace(/^\{"data":(.*)\}$/, '\n{ "data" :\t$1 }\n'),
    }),
    accepted("an envelope with an escaped key", "card", {
      envelope: (body) => body.replace("data", "\\u0064ata"),
    }),
    accepted("hexadecimal in upper case", "card", {
      how: hex,
      envelope: (body) => body.replace(/^(\{"data":")(\w+)/, upper),
    }),
    accepted("a signature in upper case", "card", {
      rewrite: (json) => json.replace(/("signature":")(\w+)/, upper),
    }),
    accepted("300 seconds old", "card", { posting: { timestampS: nowSeconds - 300 } }),
    accepted("300 seconds ahead", "card", { posting: { timestampS: nowSeconds + 300 } }),
    accepted("a cardScheme in mixed case: signed as sent, upper case in the IPN", "card", {
      wire: card({ cardScheme: "Visa" }),
    }),
    accepted("an & in a value: nothing is escaped in the signed string", "card", {
      wire: card({ merchantTransId: "a&isoResponseCode=05" }),
    }),
    accepted("a signed value beyond ASCII", "card", { wire: card({ merchantTransId: "đơn hàng ☕ 😀" }) }),
    accepted("fields that are not known are passed over", "card", {
      wire: card({ later: "1", more: { nested: ["1"] } }),
    }),
    accepted("fields that are missing are empty", "card", {
      wire: { amount: "1", id: ipns.card.id, isoResponseCode: "05", status: "ERROR", transaction_type: "SALE" },
    }),
    accepted("a card IPN of type SETTLE: neither settlementList nor saleQuantity", "card", {
      wire: card({ transaction_type: "SETTLE" }),
    }),
    accepted("a settlement of type SALE: it has saleQuantity", "settlement", {
      wire: { ...wireOf("settlement"), transaction_type: "SALE" },
    }),
    accepted("a card IPN with a settlementList: it has no saleQuantity", "card", {
      wire: card({ settlementList: [] }),
    }),
    accepted("a settlement of nothing", "settlement", { wire: { ...wireOf("settlement"), settlementList: [] } }),
    accepted("reqID in settlementList", "settlement", {
      rewrite: (json) => json.replaceAll('{"reqId"', '{"reqID"'),
    }),
    accepted("the whole IPN signed, with keys whose order is UTF-16's and no other", "card", {
      how: whole,
      wire: card({ "😀": "first of the two", "\ufb33": "second", "10": "number-like", "9": "number-like too" }),
    }),
    accepted("an unknown field whose name is empty", "card", { wire: card({ "": "1" }) }),
    accepted("the whole IPN signed, with a field whose name is empty", "card", { how: whole, wire: card({ "": "1" }) }),
    accepted("the whole IPN signed, with characters that JSON escapes or might", "card", {
      how: whole,
      wire: card({ extraData: "\u0000\u0007\b\t\n\f\r\"\\/<>&'\u007f\u2028\u2029é" }),
    }),
    accepted("the whole IPN signed, its JSON with white space and escapes of its own", "card", {
      how: whole,
      rewrite: (json) => JSON.stringify(JSON.parse(json), null, 2).replace("VND", "\\u0056N\\u0044"),
    }),
  ];
}

function refused(name: string, why: string, posting: Posting, spoil = asItIs): DeliveryVector {
  const { keyId: _, kind: __, ipn: ___, ...good } = accepted(name, "card", { posting });
  return { ...good, expect: "refuse", why, body: spoil(good.body) };
}

function wrongHeaders(): DeliveryVector[] {
  const all = [headerNames.id, headerNames.timestamp, headerNames.signature];
  const without = (names: readonly string[]) => ({
    headers: Object.fromEntries(names.map((name) => [name, undefined])),
  });
  const stale = (timestampS: number) => ({ timestampS });
  const unlike = (timestamp: string) => ({ headers: { [headerNames.timestamp]: timestamp } });
  return [
    refused("no webhook- header", "nothing tells who sent it and when", without(all)),
    ...all.map((name) => refused(`no ${name}`, "somebody removed it", without([name]))),
    refused("301 seconds old", "a replay, or a wrong clock", stale(nowSeconds - 301)),
    refused("301 seconds ahead", "a wrong clock", stale(nowSeconds + 301)),
    refused("a day old", "a replay", stale(nowSeconds - 86_400)),
    refused("another timestamp than the signed one", "it is signed", unlike(String(nowSeconds - 1))),
    refused("a timestamp in milliseconds", "seconds are signed", unlike(String((nowSeconds - 2) * 1000))),
    refused("a timestamp that is no number", "digits alone", unlike("now")),
    refused("a negative timestamp", "digits alone", unlike(String(2 - nowSeconds))),
    refused("another webhook-id than the signed one", "it is signed", { headers: { [headerNames.id]: "another" } }),
    refused("another webhook secret", "signed with a secret that is not accepted", { secrets: [otherWebhookSecret] }),
    refused("an empty webhook-signature", "no entry", { signature: () => "" }),
    refused("a webhook-signature without its version", "v1, is missing", {
      signature: (...t) => signed(...t).slice(3),
    }),
    refused("a webhook-signature of another version", "v2 is not known", {
      signature: (...text) => signed(...text).replace("v1,", "v2,"),
    }),
    refused("a webhook-signature that is cut", "32 bytes are expected", {
      signature: (...text) => signed(...text).slice(0, 23),
    }),
    refused("a space after the body", "the bytes are signed as they are sent", {}, (body) => `${body} `),
    refused("one changed character of the body", "the bytes are signed as they are sent", {}, (body) =>
      body.replace(/.(.{20}"\})$/, (end, rest: string) => (end.startsWith("A") ? "B" : "A") + rest),
    ),
    refused("the body written anew", "the bytes are signed as they are sent", {}, (body) =>
      JSON.stringify(JSON.parse(body), null, 2),
    ),
    refused("an empty body", "the bytes are signed as they are sent", {}, () => ""),
  ];
}

/** Deliveries with valid headers and invalid content. */
function wrongContents(): DeliveryVector[] {
  const known = refusedVectors().filter(({ fields }) => fields === undefined);
  return known.map(({ name, why, body, reason: _, ...how }) => {
    const kind = name.includes("settlementList") ? "settlement" : "card";
    return { ...post(name, body, how, kind), expect: "refuse" as const, why };
  });
}

/** An agreed list that names some of an extended IPN's fields. */
const naming: Signing = {
  mode: "fields",
  card: ["id", "command", "transaction_type", "status", "amount", "originalId"],
  settlement: ["id", "currency", "transaction_type", "status", "totalAmount"],
};

/** Deliveries for receivers whose setting `fields` is, or may be, `extended`; and extended ones for those it is not. */
export function extendedVectors(): DeliveryVector[] {
  const both = ["specification", "extended"] as const;
  const kinds = ["card", "settlement"] as const;
  const good = kinds.flatMap((kind) =>
    Object.entries({ ...signings, "an agreed list that names some of them": naming }).flatMap(([agreement, signing]) =>
      ([["extended"], both] as const).flatMap((fields) =>
        fields.map((sent) =>
          accepted(
            `${kind} IPN, signed: ${agreement}, fields: ${sent}, the receiver accepts ${fields.join(" and ")}`,
            kind,
            {
              how: { ...usual, signing, fields },
              fields: sent,
            },
          ),
        ),
      ),
    ),
  );
  const sampleNames = { ...usual, fields: ["extended"] } as const;
  const changed = (name: string, why: string, content: Content) => {
    const { keyId: _, kind: __, ipn: ___, ...vector } = accepted(name, "card", content);
    return { ...vector, expect: "refuse" as const, why };
  };
  const extended: Content = { fields: "extended", how: { ...usual, fields: ["extended"] } };
  const another = (json: string) => json.replace("PREAUTH_COMPLETE", "PREAUTH");
  const whole = { ...usual, signing: signings.whole, fields: ["extended"] } as const;
  return [
    ...good,
    accepted("an extended IPN under the sample's names", "card", {
      how: sampleNames,
      fields: "extended",
      wire: toWire("card", { ...ipns.card, ...extensions.card }, "sample", "extended"),
    }),
    changed("an extended IPN, the receiver's fields are the specification's", "its signature covers more fields", {
      fields: "extended",
      how: usual,
    }),
    changed("the specification's fields, the receiver's are extended", "its signature covers fewer fields", {
      how: { ...usual, fields: ["extended"] },
    }),
    changed("the whole IPN signed with the specification's fields, the receiver's are extended", "it lacks fields", {
      how: whole,
    }),
    changed("an extended IPN with another command", "it is signed", { ...extended, rewrite: another }),
    changed("an extended IPN with another command, the receiver accepts both", "it is signed", {
      ...extended,
      how: { ...usual, fields: both },
      rewrite: another,
    }),
    changed("an extended IPN whose fields were removed, the receiver accepts both", "they are signed", {
      ...extended,
      how: { ...usual, fields: both },
      rewrite: (json) => json.replace(/"command".*(?="signature")/, ""),
    }),
    accepted("the specification's fields with a command added, the receiver accepts both: it is passed over", "card", {
      how: { ...usual, fields: both },
      rewrite: (json) => json.replace('"signature"', '"command":"SALE","originalId":"","originalReqId":"","signature"'),
    }),
  ];
}

export function deliveryVectors(): DeliveryVector[] {
  return [...regular(), ...rotations(), ...odd(), ...wrongHeaders(), ...wrongContents()];
}

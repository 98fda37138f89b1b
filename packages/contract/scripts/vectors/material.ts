import { Buffer } from "node:buffer";
import type { KeyObject } from "node:crypto";
import {
  type FieldSet,
  fromWire,
  hmacKey,
  type IpnKind,
  type Sealing,
  type SealingKey,
  type Signing,
  seal,
  sealingKey,
  sealings,
  sign,
  signedString,
  toWire,
  type WireNames,
  webhookKey,
  webhookSignature,
} from "../../src/index.ts";

/** 32 bytes that count up from a start, so that nobody takes them for a real key. */
function counting(from: number): Buffer {
  return Buffer.from(Array.from({ length: 32 }, (_, at) => from + at));
}

const rawEncryption = { "ek-1": counting(0x00), "ek-2": counting(0x80) };
const rawSigning = { "sk-1": counting(0x20), "sk-2": counting(0xa0) };
export const webhookSecret = `whsec_${counting(0x40).toString("base64")}`;
export const otherWebhookSecret = `whsec_${counting(0xc0).toString("base64")}`;

export type EncryptionKeyId = keyof typeof rawEncryption;
export type SigningKeyId = keyof typeof rawSigning;

/** The keys as the vector files contain them: in hexadecimal, by id. */
export const writtenKeys = {
  encryptionKeys: { "ek-1": rawEncryption["ek-1"].toString("hex"), "ek-2": rawEncryption["ek-2"].toString("hex") },
  signingKeys: { "sk-1": rawSigning["sk-1"].toString("hex"), "sk-2": rawSigning["sk-2"].toString("hex") },
  webhookSecret,
};

export function encryptionKey(id: EncryptionKeyId): SealingKey {
  return sealingKey(id, rawEncryption[id]);
}

export function signingKey(id: SigningKeyId): KeyObject {
  return hmacKey(rawSigning[id]);
}

export const headerKey = webhookKey(webhookSecret);
export const otherWebhookKey = webhookKey(otherWebhookSecret);

/** The same IV in every run. It makes the files comparable; a sender must never do this. */
export function fixedIv(bytes: number): Buffer {
  return Buffer.alloc(bytes, 0xc0);
}

export const signings: Readonly<Record<"specification" | "agreed" | "whole", Signing>> = {
  specification: { mode: "fields" },
  agreed: {
    mode: "fields",
    card: ["id", "transaction_type", "status", "amount", "currency", "deviceId", "isoResponseCode"],
    settlement: ["id", "transaction_type", "status", "totalAmount", "deviceId", "batchNo"],
  },
  whole: { mode: "whole" },
};

/** The fields that an extended IPN adds. */
export const extensions = {
  card: { command: "PREAUTH_COMPLETE", originalId: "018f3b1e-7c1a-7d2e-9b1a-3f6d2c5e8a00", originalReqId: "" },
  settlement: { command: "SETTLEMENT", currency: "VND" },
} as const;

/**
 * Unsigned IPNs, by the tables' names. They are difficult on purpose: non-ASCII text, a JSON object inside a string,
 * empty values.
 */
export const ipns = {
  card: {
    aid: "A0000000031010",
    amount: "150000",
    appName: "Paybell POS",
    approveCode: "831000",
    batchNo: "000001",
    billId: "BILL-2024-0001",
    cardHolder: "",
    cardNumber: "411111******1111",
    cardScheme: "VISA",
    currency: "VND",
    deviceId: "PB0012345678",
    expDate: "",
    extraData: '{"order":"42","note":"Cà phê sữa đá ☕ \\"to go\\""}',
    id: "018f3b1e-7c1a-7d2e-9b1a-3f6d2c5e8a01",
    invoiceNo: "000017",
    isoResponseCode: "00",
    merchantAddress: "12 Lê Lợi, Quận 1",
    merchantId: "MID000000000001",
    merchantName: "Quán Cà Phê Sáng",
    merchantTransId: "ORDER-42",
    mid: "MID000000000001",
    paymentType: "card",
    refId: "412345678901",
    reqId: "3b241101-e2bb-4255-8caf-4136c566a962",
    status: "SUCCESS",
    swipeType: "C",
    tc: "7F3A9C0D1E2B4A56",
    tid: "",
    traceNo: "000123",
    transDateTime: "20240531143000",
    transaction_type: "SALE",
  },
  settlement: {
    batchNo: "000001",
    callbackUrl: "https://partner.example/ipn",
    deviceId: "PB0012345678",
    extraData: "",
    id: "018f3b1e-9f00-7a11-8c22-5b7e9d1f2a02",
    merchantTransId: "SETTLE-20240531",
    mid: "MID000000000001",
    quantity: "1",
    reqId: "9c858901-8a57-4791-81fe-4c455b099bc9",
    saleQuantity: "2",
    saleTotalAmount: "300000",
    status: "SUCCESS",
    tid: "TID00001",
    totalAmount: "450000",
    transaction_time: "20240531220000",
    transaction_type: "SETTLE",
    voidQuantity: "1",
    voidTotalAmount: "150000",
    settlementList: [
      { reqId: "3b241101-e2bb-4255-8caf-4136c566a962", refNo: "412345678901" },
      { reqId: "16fd2706-8baf-433b-82eb-8c7fada847da", refNo: "412345678901" },
    ],
  },
} as const;

/** The settings for opening one message: ids of the file's keys, in the order in which they are tried. */
export interface WrittenAgreement {
  readonly sealing: Sealing;
  readonly signing: Signing;
  readonly encryptionKeys: readonly EncryptionKeyId[];
  readonly signingKeys: readonly SigningKeyId[];
  /** The receiver's setting; default the specification's. */
  readonly fields?: readonly FieldSet[];
}

export interface SealingVector extends WrittenAgreement {
  readonly name: string;
  readonly kind: IpnKind;
  readonly keyId: EncryptionKeyId;
  readonly ivHex: string;
  readonly plain: string;
  readonly data: string;
  readonly body: string;
  /** The IPN that the receiver gets, by the tables' names. */
  readonly ipn: unknown;
}

export const usual: WrittenAgreement = {
  sealing: { cipher: "aes-256-gcm", encoding: "base64" },
  signing: signings.specification,
  encryptionKeys: ["ek-1"],
  signingKeys: ["sk-1"],
};

/** A signed IPN as JSON text. */
export function signedJson(
  kind: IpnKind,
  wire: Record<string, unknown>,
  signing: Signing,
  key: SigningKeyId = "sk-1",
  fields: FieldSet = "specification",
) {
  return JSON.stringify({ ...wire, signature: sign(signedString(kind, wire, signing, fields), signingKey(key)) });
}

/** Complete notifications: both bodies in every cipher and encoding, then both sets of names, then a rotation. */
export function sealingVectors(): SealingVector[] {
  const regular = (["card", "settlement"] as const).flatMap((kind) =>
    sealings.map((sealing) => {
      const encoded = sealing.cipher === "jwe" ? "" : `, ${sealing.encoding}`;
      return vector(`${kind} IPN, ${sealing.cipher}${encoded}`, kind, { ...usual, sealing });
    }),
  );
  const rotated = { encryptionKeys: ["ek-1", "ek-2"], signingKeys: ["sk-1", "sk-2"] } as const;
  return [
    ...regular,
    vector(
      "card IPN, the sample's names, the whole IPN signed",
      "card",
      { ...usual, signing: signings.whole },
      "sample",
    ),
    vector(
      "settlement IPN, the sample's names, an agreed list",
      "settlement",
      { ...usual, signing: signings.agreed },
      "sample",
    ),
    ...(["card", "settlement"] as const).map((kind) =>
      vector(`extended ${kind} IPN`, kind, { ...usual, fields: ["extended"] }),
    ),
    ...(["aes-256-gcm", "aes-256-cbc", "jwe"] as const).map((cipher) =>
      vector(
        `card IPN, ${cipher}, sealed and signed with the second keys while both are accepted`,
        "card",
        { ...usual, ...rotated, sealing: { cipher, encoding: "base64" } },
        "table",
        ["ek-2", "sk-2"],
      ),
    ),
  ];
}

function vector(
  name: string,
  kind: IpnKind,
  agreement: WrittenAgreement,
  names: WireNames = "table",
  [keyId, signingKeyId]: readonly [EncryptionKeyId, SigningKeyId] = ["ek-1", "sk-1"],
): SealingVector {
  const [fields = "specification"] = agreement.fields ?? [];
  const wire = toWire(kind, { ...ipns[kind], ...extensions[kind] }, names, fields);
  const plain = signedJson(kind, wire, agreement.signing, signingKeyId, fields);
  const data = seal(plain, agreement.sealing, encryptionKey(keyId), fixedIv);
  const ivHex = fixedIv(agreement.sealing.cipher === "aes-256-cbc" ? 16 : 12).toString("hex");
  return {
    name,
    kind,
    ...agreement,
    keyId,
    ivHex,
    plain,
    data,
    body: JSON.stringify({ data }),
    ipn: fromWire(plain, fields).ipn,
  };
}

export interface SigningVector {
  readonly name: string;
  readonly kind: IpnKind;
  readonly signing: Signing;
  /** Absent: the specification's. */
  readonly fields?: FieldSet;
  readonly wire: Readonly<Record<string, unknown>>;
  readonly signedString: string;
  readonly signature: string;
}

/** Every body under every agreement and both sets of names, and values that implementations often get wrong. */
export function signingVectors(): SigningVector[] {
  const kinds = ["card", "settlement"] as const;
  const agreements = ["specification", "agreed", "whole"] as const;
  const regular = kinds.flatMap((kind) =>
    (["table", "sample"] as const).flatMap((names) =>
      agreements.map((agreement) => {
        const name = `${kind} IPN, ${names} names, ${agreementNames[agreement]}`;
        return signingVector(name, kind, signings[agreement], toWire(kind, ipns[kind], names));
      }),
    ),
  );
  const extended = kinds.flatMap((kind) =>
    agreements.map((agreement) => {
      const wire = toWire(kind, { ...ipns[kind], ...extensions[kind] }, "table", "extended");
      const name = `extended ${kind} IPN, ${agreementNames[agreement]}`;
      return signingVector(name, kind, signings[agreement], wire, "extended");
    }),
  );
  return [...regular, ...oddVectors(), ...extended];
}

const agreementNames = {
  specification: "the specification's signing order",
  agreed: "an agreed list",
  whole: "the whole IPN",
} as const;

function oddVectors(): SigningVector[] {
  const card = (changes: Record<string, unknown>, names: WireNames = "table") => ({
    ...toWire("card", ipns.card, names),
    ...changes,
  });
  const fields = signings.specification;
  return [
    signingVector("empty, null and missing values keep their key", "card", fields, {
      ...card({ approveCode: "", cardScheme: null }),
      traceNo: undefined,
    }),
    signingVector("values are signed as they stand, an & too", "card", fields, card({ merchantTransId: "a&amount=1" })),
    signingVector("values are signed as UTF-8", "card", fields, card({ merchantTransId: "đơn hàng ☕ 😀" })),
    signingVector("a cardScheme in mixed case is signed as sent", "card", fields, card({ cardScheme: "Visa" })),
    signingVector("a signature already there is never signed", "card", fields, card({ signature: "00" })),
    signingVector(
      "a signature already there is never signed, the whole IPN",
      "card",
      signings.whole,
      card({ signature: "00" }),
    ),
    signingVector("keys are ordered by UTF-16 code units, the whole IPN", "card", signings.whole, {
      ...card({}),
      "😀": "first of the two",
      "\ufb33": "second",
      "10": "a number-like key",
      "9": "another",
    }),
  ];
}

function signingVector(
  name: string,
  kind: IpnKind,
  signing: Signing,
  wire: Record<string, unknown>,
  fields?: FieldSet,
): SigningVector {
  const text = signedString(kind, wire, signing, fields);
  return {
    name,
    kind,
    signing,
    ...(fields && { fields }),
    wire,
    signedString: text,
    signature: sign(text, signingKey("sk-1")),
  };
}

export interface HeaderVector {
  readonly name: string;
  readonly secret: string;
  readonly id: string;
  readonly timestamp: string;
  readonly body: string;
  readonly signature: string;
}

/** Standard Webhooks v1: HMAC-SHA256 over `id.timestamp.body`. */
export function headerVectors(): HeaderVector[] {
  const id = "018f3b1e-7c1a-7d2e-9b1a-3f6d2c5e8a03";
  const timestampS = 1717140600;
  return [
    { name: "a body as it is sent", body: '{"data":"wMDAwMDAwMDAwMDA"}' },
    { name: "an empty body", body: "" },
    { name: "a body beyond ASCII", body: "cà phê ☕ 😀" },
  ].map(({ name, body }) => ({
    name,
    secret: webhookSecret,
    id,
    timestamp: String(timestampS),
    body,
    signature: webhookSignature(id, timestampS, body, headerKey),
  }));
}

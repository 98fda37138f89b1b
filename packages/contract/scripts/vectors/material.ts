import { Buffer } from "node:buffer";
import type { KeyObject } from "node:crypto";
import { hmacKey, type SealingKey, type Signing, sealingKey, webhookKey } from "../../src/index.ts";

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

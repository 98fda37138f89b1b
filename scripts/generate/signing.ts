import { Buffer } from "node:buffer";
import {
  cardSigningOrder,
  ciphers,
  defaultSigning,
  encodings,
  hmacKey,
  type IpnKind,
  type Signing,
  sealedForms,
  settlementSigningOrder,
  sign,
  signedString,
  toWire,
} from "@paybell/contract";
import { code, codeBlock, type GeneratedFile, markdown, table } from "./document.ts";

/** Bytes that count up from 0, so that they cannot be confused with a real key. */
const exampleKey = Buffer.from(Array.from({ length: 32 }, (_, at) => at));

const examples: Readonly<Record<IpnKind, Readonly<Record<string, unknown>>>> = {
  card: {
    aid: "A0000000031010",
    amount: "150000",
    approveCode: "831000",
    batchNo: "000001",
    cardScheme: "VISA",
    isoResponseCode: "00",
    merchantTransId: "ORDER-42",
    mid: "MID000000000001",
    traceNo: "000123",
  },
  settlement: {
    batchNo: "000001",
    mid: "MID000000000001",
    quantity: "1",
    saleQuantity: "2",
    saleTotalAmount: "300000",
    totalAmount: "450000",
    voidQuantity: "1",
    voidTotalAmount: "150000",
  },
};

function example(kind: IpnKind, signing: Signing): string {
  const text = signedString(kind, toWire(kind, examples[kind], "table"), signing);
  return codeBlock("text", `signed string: ${text}\nsignature:     ${sign(text, hmacKey(exampleKey))}`);
}

function orderTable(order: readonly string[]): string {
  return table(
    ["Position", "Field"],
    order.map((name, at) => [String(at + 1), code(name)]),
  );
}

/** The signature's coverage and form, with computed examples. */
export function signingReference(): GeneratedFile {
  return {
    path: "docs/reference/signing.md",
    text: markdown(
      "Signing and encryption",
      "Sections [5](specification.md#5-security) and [5.1](specification.md#51-the-signed-string) of the " +
        "specification. `signature` is the HMAC-SHA256 of the signed string's UTF-8 bytes, in lower-case " +
        "hexadecimal. It is never part of that string. Verify it in constant time, and accept either case.",
      `The examples use the key \`${exampleKey.toString("hex")}\` (hexadecimal) and a terminal without \`tid\`: ` +
        "an empty value keeps its key.",
      "## Card transaction IPN",
      "`isoResponseCode` appears twice.",
      orderTable(cardSigningOrder),
      example("card", defaultSigning),
      "## Settlement IPN",
      orderTable(settlementSigningOrder),
      example("settlement", defaultSigning),
      "## Other agreements",
      '`signing: {"mode": "fields", "card": […], "settlement": […]}` replaces either order by a list that you ' +
        "agreed on, of the tables' names. It must hold `id`, `transaction_type`, `status` and `amount` (settlement: " +
        "`totalAmount`); it must not hold `extraData`, `settlementList` or `signature`.",
      '`signing: {"mode": "whole"}` signs the RFC 8785 canonical JSON of the whole object as sent, without ' +
        "`signature`. This is the card IPN above, with every other field empty:",
      example("card", { mode: "whole" }),
      "## Encryption",
      table(
        ["cipher", "data"],
        ciphers.map((cipher) => [code(cipher), sealedForms[cipher]]),
      ),
      `\`encoding\` is ${encodings.map(code).join(", ")}; the first is the default. Each attempt has a fresh IV.`,
      "Test vectors for an implementation in any language: " +
        "[packages/contract/vectors](../../packages/contract/vectors/README.md).",
    ),
  };
}

import { Buffer } from "node:buffer";
import {
  cardSigningOrder,
  ciphers,
  defaultSigning,
  encodings,
  type FieldSet,
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

const extended = { command: "PREAUTH_COMPLETE", originalId: "018f3b1e-7c1a-7d2e-9b1a-3f6d2c5e8a00" };

function example(kind: IpnKind, signing: Signing, fields: FieldSet = "specification"): string {
  const wire = toWire(kind, { ...examples[kind], ...extended }, "table", fields);
  const text = signedString(kind, wire, signing, fields);
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
      "This page has the details of sections [5](specification.md#5-security) and " +
        "[5.1](specification.md#51-the-signed-string) of the specification.",
      "## The signature",
      "The signed string is `key=value` for each signed field, in a fixed order, joined with `&`. Nothing is " +
        "escaped. The field `signature` is the HMAC-SHA256 of the string's UTF-8 bytes under the partner's " +
        "`signingKey`, in lower-case hexadecimal. Compare it in constant time, and accept either case.",
      `The examples use the key \`${exampleKey.toString("hex")}\` (hexadecimal) and a terminal without \`tid\`: ` +
        "a field with an empty value keeps its key.",
      "### Card transaction IPN",
      "`isoResponseCode` appears twice.",
      orderTable(cardSigningOrder),
      example("card", defaultSigning),
      "### Settlement IPN",
      orderTable(settlementSigningOrder),
      example("settlement", defaultSigning),
      "### Other lists of fields",
      "A partner can agree with the operator on what is signed. The result is the partner's setting `signing`.",
      '`{"mode": "fields", "card": […], "settlement": […]}` replaces either order by another list of [field ' +
        "names](fields.md). A list must have `id`, `transaction_type`, `status` and `amount` (settlement: " +
        "`totalAmount`). It must not have `extraData`, `settlementList` or `signature`.",
      "### The extended IPN",
      'With the partner\'s setting `fields: "extended"` the added fields are signed after those above, or after an ' +
        "agreed list, unless it names them. The card IPN above, as the PreAuth-Complete of a PreAuth:",
      example("card", defaultSigning, "extended"),
      "### The whole IPN",
      '`{"mode": "whole"}` signs the RFC 8785 canonical JSON of the whole object as sent, without `signature`. This ' +
        "is the card IPN above, with every other field empty:",
      example("card", { mode: "whole" }),
      "## Encryption",
      "The field `data` of the envelope is the IPN's JSON, encrypted under the partner's `encryptionKey`. `cipher` " +
        "and `encoding` are settings of the partner. ‖ joins bytes, and the number of bytes is in brackets.",
      table(
        ["cipher", "data"],
        ciphers.map((cipher) => [code(cipher), sealedForms[cipher]]),
      ),
      `\`encoding\` is ${encodings.map(code).join(", ")}; the first is the default. With \`jwe\` it is always ` +
        "`base64url`. Each attempt has a fresh random IV.",
      "Test vectors for an implementation in any language: " +
        "[packages/contract/vectors](../../packages/contract/vectors/README.md).",
    ),
  };
}

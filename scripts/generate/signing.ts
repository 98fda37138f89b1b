import { Buffer } from "node:buffer";
import {
  cardSigningOrder,
  ciphers,
  defaultSigning,
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
import { code, codeBlock, type GeneratedFile, table, withParts } from "./document.ts";
import { samplePost } from "./openapi-examples.ts";

/** The document names it: bytes that count up from 0, so that they cannot be confused with a real key. */
const exampleKey = Buffer.from(Array.from({ length: 32 }, (_, at) => at));

/** The signed fields of the sample IPNs; the others are empty. */
const examples: Readonly<Record<IpnKind, Readonly<Record<string, unknown>>>> = {
  card: signedOf("card", cardSigningOrder),
  settlement: signedOf("settlement", settlementSigningOrder),
};

function signedOf(kind: IpnKind, order: readonly string[]): Readonly<Record<string, unknown>> {
  return Object.fromEntries(Object.entries(samplePost(kind).ipn).filter(([name]) => order.includes(name)));
}

const extended = {
  command: "PREAUTH_COMPLETE",
  originalId: "018f3b1e-7c1a-7d2e-9b1a-3f6d2c5e8a00",
  originalReqId: "5c3f0c9e-52a4-4b0e-9f0e-1d5a8f2f7a01",
};

function example(kind: IpnKind, signing: Signing, fields: FieldSet = "specification"): string {
  const wire = toWire(kind, { ...examples[kind], ...extended }, "table", fields);
  const text = signedString(kind, wire, signing, fields);
  return codeBlock("text", `signed string: ${text}\nsignature:     ${sign(text, hmacKey(exampleKey))}`);
}

function orderList(order: readonly string[]): string {
  return `In this order: ${order.map((name, at) => `${at + 1} ${code(name)}`).join(", ")}.`;
}

/** The signed fields in their order, computed examples, and the form of each cipher. */
export function signingReference(): GeneratedFile {
  return withParts("docs/reference/signing.md", {
    card: `${orderList(cardSigningOrder)}\n\n${example("card", defaultSigning)}`,
    settlement: `${orderList(settlementSigningOrder)}\n\n${example("settlement", defaultSigning)}`,
    extended: example("card", defaultSigning, "extended"),
    whole: example("card", { mode: "whole" }),
    ciphers: table(
      ["cipher", "data"],
      ciphers.map((cipher) => [code(cipher), sealedForms[cipher]]),
    ),
  });
}

export { canonicalJson } from "./canonical-json.ts";
export * from "./codes.ts";
export {
  type CardIpn,
  type ExtendedCardIpn,
  type ExtendedSettlementIpn,
  type FieldSet,
  fieldSets,
  type IpnKind,
  type SettlementEntry,
  type SettlementIpn,
  type UnsignedIpn,
} from "./columns.ts";
export * from "./commands.ts";
export * from "./decimal.ts";
export { type Encoding, encodings } from "./encoding.ts";
export { NotAuthentic, type NotAuthenticReason } from "./errors.ts";
export * from "./fields.ts";
export * from "./headers.ts";
export { overlapHours } from "./keys.ts";
export { type OpenedIpn, type Opening, openAndVerify } from "./opening.ts";
export { afterSpace, countKeys, endOfString, parseJson, repeatedKey } from "./parse-json.ts";
export { fromWire, type WireIpn } from "./read-wire.ts";
export { sampleSale } from "./sample.ts";
export { open, seal, sealedForms } from "./seal.ts";
export {
  type Cipher,
  ciphers,
  defaultSealing,
  type Sealing,
  type SealingKey,
  sealingKey,
  sealings,
} from "./sealing.ts";
export {
  cardSigningOrder,
  defaultSigning,
  hmacKey,
  type Signing,
  settlementSigningOrder,
  sign,
  signatureMatches,
  signedFields,
  signedString,
  signingProblems,
} from "./signing.ts";
export { toWire, type WireNames, wireNames } from "./wire.ts";

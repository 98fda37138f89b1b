export { type Encoding, encodings } from "./cryptography/encoding.ts";
export { overlapHours } from "./cryptography/keys.ts";
export { open, seal, sealedForms } from "./cryptography/seal.ts";
export {
  type Cipher,
  ciphers,
  defaultSealing,
  type Sealing,
  type SealingKey,
  sealingKey,
  sealings,
} from "./cryptography/sealing.ts";
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
} from "./cryptography/signing.ts";
export * from "./decimal.ts";
export { NotAuthentic, type NotAuthenticReason } from "./errors.ts";
export * from "./fields/codes.ts";
export {
  type CardIpn,
  type ExtendedCardIpn,
  type ExtendedSettlementIpn,
  type FieldSet,
  fieldSets,
  type IpnKind,
  type SettlementEntry,
  type SettlementIpn,
  sampleSale,
  type UnsignedIpn,
} from "./fields/columns.ts";
export * from "./fields/commands.ts";
export * from "./fields/fields.ts";
export { toWire, type WireNames, wireNames } from "./fields/wire.ts";
export * from "./headers.ts";
export { canonicalJson } from "./json/canonical-json.ts";
export { afterSpace, countKeys, endOfString, parseJson, repeatedKey } from "./json/parse-json.ts";
export { type OpenedIpn, type Opening, openAndVerify } from "./receiving/opening.ts";
export { fromWire, type WireIpn } from "./receiving/read-wire.ts";

export { aids, cardSchemeFor, contradicts } from "./aids.ts";
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
export { currencies, currencyDecimals } from "./currencies.ts";
export { type Encoding, encodings } from "./encoding.ts";
export { NotAuthentic, type NotAuthenticReason } from "./errors.ts";
export * from "./fields.ts";
export * from "./headers.ts";
export { notificationHeaders } from "./notification-headers.ts";
export { type OpenedIpn, type Opening, openAndVerify } from "./opening.ts";
export { countKeys, parseJson, repeatedKey } from "./parse-json.ts";
export { fromWire, type WireIpn } from "./read-wire.ts";
export { type ResponseCode, responseCodes, responseMeaning } from "./response-codes.ts";
export { sampleSale } from "./sample.ts";
export { ipnJsonSchema } from "./schema.ts";
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
  type Signing,
  settlementSigningOrder,
  signedFields,
  signingProblems,
} from "./signed-fields.ts";
export { hmacKey, sign, signatureMatches, signedString } from "./signing.ts";
export { toWire, type WireNames, wireNames } from "./wire.ts";

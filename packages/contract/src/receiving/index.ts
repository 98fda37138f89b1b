/** Only what a receiver needs: a partner's process loads neither the descriptive tables nor the code that seals. */

export {
  type CardIpn,
  type ExtendedCardIpn,
  type ExtendedSettlementIpn,
  type FieldSet,
  fieldSets,
  type IpnKind,
  type SettlementEntry,
  type SettlementIpn,
} from "../columns.ts";
export { type NotifiedCommand, notifiedCommands } from "../commands.ts";
export { type Encoding, encodings } from "../encoding.ts";
export { NotAuthentic, type NotAuthenticReason } from "../errors.ts";
export { headerNames, webhookKey, webhookSignatureMatches } from "../headers.ts";
export { type OpenedIpn, openAndVerify } from "../opening.ts";
export { parseJson } from "../parse-json.ts";
export {
  type Cipher,
  ciphers,
  defaultSealing,
  type Sealing,
  type SealingKey,
  sealingKey,
  sealings,
} from "../sealing.ts";
export { defaultSigning, hmacKey, type Signing, signingProblems } from "../signing.ts";

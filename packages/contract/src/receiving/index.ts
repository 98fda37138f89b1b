/** Only what a receiver needs: a partner's process loads neither the descriptive tables nor the code that seals. */

export { type Encoding, encodings } from "../cryptography/encoding.ts";
export {
  type Cipher,
  ciphers,
  defaultSealing,
  type Sealing,
  type SealingKey,
  sealingKey,
  sealings,
} from "../cryptography/sealing.ts";
export { defaultSigning, hmacKey, type Signing, signingProblems } from "../cryptography/signing.ts";
export { NotAuthentic, type NotAuthenticReason } from "../errors.ts";
export {
  type CardIpn,
  type ExtendedCardIpn,
  type ExtendedSettlementIpn,
  type FieldSet,
  fieldSets,
  type IpnKind,
  type SettlementEntry,
  type SettlementIpn,
} from "../fields/columns.ts";
export { type NotifiedCommand, notifiedCommands } from "../fields/commands.ts";
export { headerNames, webhookKey, webhookSignatureMatches } from "../headers.ts";
export { parseJson } from "../json/parse-json.ts";
export { type OpenedIpn, openAndVerify } from "./opening.ts";

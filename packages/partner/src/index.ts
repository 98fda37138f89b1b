export type {
  CardIpn,
  ExtendedCardIpn,
  ExtendedSettlementIpn,
  FieldSet,
  SettlementEntry,
  SettlementIpn,
} from "@paybell/contract/receiving";
export { deduplicate, type OnceIpn } from "./deduplicate.ts";
export type { RequestHeaders } from "./headers.ts";
export type { Keys, VersionedKey } from "./keys.ts";
export { Misused, type MisusedReason, PaybellError } from "./misused.ts";
export { bodyBytesMax, freshnessSecondsDefault, type ReceiverOptions } from "./options.ts";
export type { ChainOrder } from "./order.ts";
export { type ReceivedIpn, type Receiver, receiver } from "./receiver.ts";
export { IpnRefused, type RefusedReason } from "./refused.ts";
export { memoryStore } from "./stores/memory.ts";
export type { KnownIpn, SeenIpn, SeenStore, SqlStore } from "./stores/store.ts";

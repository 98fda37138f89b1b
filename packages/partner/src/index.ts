export type {
  CardIpn,
  ExtendedCardIpn,
  ExtendedSettlementIpn,
  FieldSet,
  SettlementEntry,
  SettlementIpn,
} from "@paybell/contract/receiving";
export { Misused, type MisusedReason, PaybellError } from "./errors/misused.ts";
export { IpnRefused, type RefusedReason } from "./errors/refused.ts";
export { deduplicate, type OnceIpn } from "./receiver/deduplicate.ts";
export type { RequestHeaders } from "./receiver/headers.ts";
export type { Keys, VersionedKey } from "./receiver/keys.ts";
export { bodyBytesMax, freshnessSecondsDefault, type ReceiverOptions } from "./receiver/options.ts";
export type { ChainOrder } from "./receiver/order.ts";
export { type ReceivedIpn, type Receiver, receiver } from "./receiver/receiver.ts";
export { memoryStore } from "./stores/memory.ts";
export type { KnownIpn, SeenIpn, SeenStore, SqlStore } from "./stores/store.ts";

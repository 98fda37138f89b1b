export type { CardIpn, SettlementEntry, SettlementIpn } from "@paybell/contract/receiving";
export type * from "./api.ts";
export { ApiError, type ClientErrorCode } from "./api-error.ts";
export { type CaughtUp, CursorRefused, catchUp } from "./catch-up.ts";
export { type CallOptions, type Client, type ClientOptions, client } from "./client.ts";
export { deduplicate, type OnceIpn } from "./deduplicate.ts";
export type { RequestHeaders } from "./headers.ts";
export type { Keys, KeyVersion } from "./keys.ts";
export { Misused, type MisusedReason } from "./misused.ts";
export { bodyBytesMax, freshnessSecondsDefault, type ReceiverOptions } from "./options.ts";
export type { Order } from "./order.ts";
export { PaybellError } from "./paybell-error.ts";
export { type ReceivedIpn, type Receiver, receiver } from "./receiver.ts";
export {
  type Reconcilable,
  type Reconciliation,
  type ReconciliationFinding,
  reconcile,
  type SettlementTotalField,
  type TotalFinding,
} from "./reconcile.ts";
export { IpnRefused, type RefusedReason } from "./refused.ts";
export { memoryStore } from "./stores/memory.ts";
export type { KnownIpn, SeenIpn, SeenStore, SqlStore } from "./stores/store.ts";

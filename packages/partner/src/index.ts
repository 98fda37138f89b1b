export type { CardIpn, SettlementEntry, SettlementIpn } from "@paybell/contract";
export type { RequestHeaders } from "./headers.ts";
export type { Keys, KeyVersion } from "./keys.ts";
export { bodyBytesMax, freshnessSecondsDefault, type ReceiverOptions } from "./options.ts";
export { type ReceivedIpn, type Receiver, receiver } from "./receiver.ts";
export { IpnRefused, type RefusedReason } from "./refused.ts";

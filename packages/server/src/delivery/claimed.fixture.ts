import { newId, type PartnerId } from "../ids.ts";
import type { Claimed } from "./store.ts";

/** In this instance's hands for the first time, of a chain of its own. */
export function claimedOf(partnerId: PartnerId, more: Partial<Claimed> = {}): Claimed {
  return {
    partnerId,
    id: newId<"notification">(),
    transactionId: null,
    originalId: null,
    chainId: newId<"chain">(),
    command: "SALE",
    content: "{}",
    callBackUrl: null,
    toRegistered: false,
    claimNo: 1,
    attemptsMade: 0,
    scheduleStartMs: 0,
    outOfOrder: false,
    isProbe: false,
    ...more,
  };
}

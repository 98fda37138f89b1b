import { type LeaseId, newId, type PartnerId } from "../ids.ts";
import type { Attempt, Delivery } from "./delivery.ts";
import { type DeliveryOutcome, keyOf } from "./store.ts";

/** A Sale's notification before its first attempt, in a chain of its own. */
export function deliveryOf(partnerId: PartnerId, more: Partial<Delivery> = {}): Delivery {
  const content = more.content ?? "{}";
  return {
    partnerId,
    id: newId<"notification">(),
    queue: "",
    round: 0,
    attemptsMade: 0,
    attemptsBefore: 0,
    scheduleStartMs: Date.now(),
    chainId: newId<"chain">(),
    follows: false,
    settlesBatch: null,
    toRegistered: false,
    transactionId: null,
    originalId: null,
    command: "SALE",
    callBackUrl: null,
    content,
    bytes: Buffer.byteLength(content),
    ...more,
  };
}

export const acceptedAttempt: Attempt = {
  startedAtMs: Date.now(),
  durationMs: 12,
  url: "https://partner.example/ipn",
  address: "192.0.2.1",
  httpStatus: 200,
  reason: null,
  detail: null,
  answer: null,
  keyId: "key",
};

export const failedAttempt: Attempt = { ...acceptedAttempt, httpStatus: 503, reason: "status", detail: "HTTP 503" };

/** The outcome of an attempt under `leaseId`. Without a failure reason, everything but an acceptance is a 503. */
export function outcomeOf(
  delivery: Delivery,
  next: "accepted" | "parked" | { readonly delayMs: number },
  more: Partial<DeliveryOutcome> = {},
): DeliveryOutcome {
  return {
    ...keyOf(delivery),
    leaseId: newId<"lease">() as LeaseId,
    attempt: next === "accepted" ? acceptedAttempt : failedAttempt,
    next: typeof next === "string" ? { kind: next } : { kind: "retry", delayMs: next.delayMs },
    circuits: [],
    ...more,
  };
}

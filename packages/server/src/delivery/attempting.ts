import type { PartnerId } from "../ids.ts";
import type { Partner } from "../partners/partner.ts";
import type { Attempt, Delivery, DeliveryOutcome } from "./store.ts";

/** The result of one attempt. */
export interface Attempted {
  readonly attempt: Attempt;
  readonly next: DeliveryOutcome["next"];
  /** The wait that a 429 or 503 asked for. */
  readonly retryAfterMs?: number;
}

export interface AttemptOptions {
  /** It is sent before an earlier one of its chain was accepted. */
  readonly outOfOrder: boolean;
  /** Called again before the first byte is written: whether the lease is still held. */
  readonly mayWrite: () => boolean;
}

/**
 * Makes one POST of a notification. Never rejects: any failure is an attempt with its reason. `putOffMs`: nothing was
 * sent, and no attempt is counted.
 */
export type Attempting = (
  delivery: Delivery,
  partner: Partner,
  options: AttemptOptions,
) => Promise<Attempted | { readonly putOffMs: number }>;

/** Partners as a worker knows them, at most five seconds old. */
export interface PartnerSource {
  /** Undefined if unknown or too old. Then it is requested, and `reconsider` is called when it arrives. */
  peek(id: PartnerId): Partner | undefined;
}

import type { PartnerId } from "../ids.ts";
import type { Partner } from "../partners/partner.ts";
import type { Attempt, Delivery, DeliveryOutcome } from "./store.ts";

/** What came of one attempt. */
export interface Attempted {
  readonly attempt: Attempt;
  readonly next: DeliveryOutcome["next"];
  /** What a 429 or 503 asked to wait. */
  readonly retryAfterMs?: number;
}

export interface AttemptOptions {
  /** It leaves before an earlier one of its chain was accepted. */
  readonly outOfOrder: boolean;
  /** Asked again before the first byte is written: whether the lease is held. */
  readonly mayWrite: () => boolean;
}

/**
 * Makes one POST of a notification. Never rejects: whatever goes wrong is an attempt with its reason. `putOffMs`:
 * nothing was sent, and no attempt is counted.
 */
export type Attempting = (
  delivery: Delivery,
  partner: Partner,
  options: AttemptOptions,
) => Promise<Attempted | { readonly putOffMs: number }>;

/** Partners as a worker sees them, at most five seconds old. */
export interface PartnerSource {
  /** Undefined: not at hand, or too old. It is asked for then, and `reconsider` is called when it is there. */
  peek(id: PartnerId): Partner | undefined;
}

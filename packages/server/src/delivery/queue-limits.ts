import type { Partner } from "../partners/partner.ts";

/** Deliveries of one queue in memory, and whether it is read. */
export interface QueueLimits {
  readonly rowsMax: number;
  /** False: its partner is paused or not known yet, or the worker does not own it. */
  readonly mayRead: boolean;
}

/** Of one queue, for each POST that its partner may have in flight. */
const rowsPerInFlight = 4;
const rowsPerQueueMax = 512;
/** Of a queue whose partner the main thread is asked for: its answer comes in a moment. */
const rowsOfUnknown = 32;

/** @param partner undefined while it is not known */
export function queueLimits(partner: Partner | undefined, isOwned: boolean): QueueLimits {
  if (isOwned && partner === undefined) return { rowsMax: rowsOfUnknown, mayRead: false };
  if (partner?.state !== "active" || !isOwned) return { rowsMax: 0, mayRead: false };
  return { rowsMax: Math.min(partner.settings.maxInFlight * rowsPerInFlight, rowsPerQueueMax), mayRead: true };
}

import type { Partner } from "../partners/partner.ts";

/** The bounds of one queue in memory, and whether it is read. */
export interface QueueLimits {
  /** 0: nothing of it is kept in memory. */
  readonly rowsMax: number;
  /** False: its partner is paused or unknown yet, or the worker does not own it. */
  readonly mayRead: boolean;
}

/** Rows of one queue for each POST that its partner may have in flight. */
const rowsPerInFlight = 4;
const rowsPerQueueMax = 512;
/** Rows of a queue whose partner was requested and arrives shortly. */
const rowsOfUnknown = 32;

/** @param partner undefined while it is not known @param isMissing it was requested, and did not arrive */
export function queueLimits(partner: Partner | undefined, isOwned: boolean, isMissing: boolean): QueueLimits {
  if (isOwned && partner === undefined) return { rowsMax: isMissing ? 0 : rowsOfUnknown, mayRead: false };
  if (partner?.state !== "active" || !isOwned) return { rowsMax: 0, mayRead: false };
  return { rowsMax: Math.min(partner.settings.maxInFlight * rowsPerInFlight, rowsPerQueueMax), mayRead: true };
}

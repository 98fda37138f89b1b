import type { EventKind, NewEvent } from "../events.ts";
import type { EventId } from "../ids.ts";

/** Those that somebody should be told of at once. The others are only recorded. */
export const alertKinds: readonly EventKind[] = [
  "parked",
  "reversal_refused",
  "reversal_late",
  "settlement_mismatched",
  "settlement_unanswered",
  "settlement_late",
  "upload_refused",
  "late_approval",
  "settlement_refused",
  "report_conflict",
  "report_refused",
  "key_limit",
  "partitions_short",
  "oldest_pending",
  "shards_unowned",
  "wrong_keys",
  "key_from_elsewhere",
  "certificate_ending",
  "partner_unreadable",
  "breaker_open",
  "breaker_closed",
  "endpoint_gone",
  "acquirer_down",
  "acquirer_up",
];

/** An event on its way to the alert URL. */
export interface Alert extends NewEvent {
  readonly id: EventId;
  readonly atMs: number;
  /** Times it was tried, this one included. */
  readonly tries: number;
  /** The same for all that are told together. */
  readonly groupId: string;
}

export interface EventStore {
  /** Records events; with `alert`, those that are alerts are due to be sent. */
  record(events: readonly NewEvent[], alert: boolean): Promise<void>;
  /**
   * Takes due alerts of one kind for `leaseS` seconds, to be told together: nobody else sends them meanwhile, everybody
   * may afterwards.
   */
  claimDue(rowsMax: number, leaseS: number): Promise<readonly Alert[]>;
  /** Its group was sent, or given up. @param quietS for so long, others of its kind wait */
  settle(alert: Alert, quietS: number): Promise<void>;
  /** Its group is due again. */
  retry(alert: Alert, delayS: number): Promise<void>;
}

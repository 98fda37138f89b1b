import type { EventKind, NewEvent } from "../events.ts";
import type { EventId } from "../ids.ts";

/** Events that are sent to the operator at once. The others are only recorded. */
export const alertKinds: readonly EventKind[] = [
  "parked",
  "reversal_refused",
  "reversal_late",
  "settlement_mismatched",
  "settlement_unanswered",
  "settlement_late",
  "upload_refused",
  "late_approval",
  "answer_in_doubt",
  "approval_unmatched",
  "settlement_refused",
  "report_conflict",
  "report_refused",
  "intake_file_failed",
  "clearing_exception",
  "clearing_file_failed",
  "key_limit",
  "partitions_short",
  "oldest_pending",
  "shards_unowned",
  "wrong_keys",
  "key_from_elsewhere",
  "certificate_ending",
  "partner_unreadable",
  "delivery_fault",
  "egress_failed",
  "feed_failed",
  "partner_message_failed",
  "breaker_open",
  "breaker_closed",
  "endpoint_gone",
  "acquirer_down",
  "acquirer_up",
  "acquirer_signed_off",
  "acquirer_signed_on",
  "acquirer_advice",
  "acquirer_request_unknown",
  "mac_key_refused",
  "profile_ambiguous",
  "restored",
  "audit_failed",
  "content_changed",
  "row_changed",
  "audit_head",
];

/** An event to be sent to the alert channels. */
export interface Alert extends NewEvent {
  readonly id: EventId;
  readonly atMs: number;
  /** The number of tries, this one included. */
  readonly tries: number;
  /** The same for all alerts that are sent together. */
  readonly groupId: string;
}

export interface EventStore {
  /** Records events. With `alert`, those of the kinds above become due. */
  record(events: readonly NewEvent[], alert: boolean): Promise<void>;
  /** Whether the service itself, any instance of it, recorded such an event since then. */
  wasRecordedSince(kind: EventKind, sinceMs: number): Promise<boolean>;
  /**
   * Claims due alerts of one kind for `leaseS` seconds, to be sent together. No other instance sends them meanwhile;
   * any may afterwards.
   */
  claimDue(rowsMax: number, leaseS: number): Promise<readonly Alert[]>;
  /** The group was sent, or given up. @param quietS how long others of its kind wait */
  settle(alert: Alert, quietS: number): Promise<void>;
  /** The group becomes due again. */
  retry(alert: Alert, delayS: number): Promise<void>;
}

import type { EventId, PartnerId } from "../ids.ts";

/** Events for the operator. The names are stable: alerts, metrics and the console show them. */
export const eventKinds = [
  "parked",
  "in_doubt",
  "reversal_refused",
  "reversal_late",
  "reversal_retried",
  "reversal_resolved",
  "settlement_mismatched",
  "settlement_unanswered",
  "settlement_late",
  "settlement_aborted",
  "settlement_resolved",
  "upload_refused",
  "late_answer",
  "late_approval",
  "answer_in_doubt",
  "approval_unmatched",
  "delimiter_sent",
  "settlement_refused",
  "report_conflict",
  "report_refused",
  "intake_file_failed",
  "settlement_differs",
  "clearing_exception",
  "clearing_file_failed",
  "clearing_file_cut",
  "key_limit",
  "partitions_short",
  "history_waiting",
  "oldest_pending",
  "shards_unowned",
  "partner_unreadable",
  "delivery_fault",
  "egress_failed",
  "feed_failed",
  "breaker_open",
  "breaker_closed",
  "endpoint_gone",
  "wrong_keys",
  "key_from_elsewhere",
  "certificate_ending",
  "acquirer_down",
  "acquirer_up",
  "acquirer_signed_off",
  "acquirer_signed_on",
  "acquirer_cutover",
  "acquirer_advice",
  "acquirer_request_unknown",
  "mac_key_taken",
  "mac_key_refused",
  "profile_ambiguous",
  "restored",
  "audit_failed",
  "content_changed",
  "row_changed",
  "audit_head",
  "partner_message_failed",
  "alert_test",
] as const;
export type EventKind = (typeof eventKinds)[number];

export interface NewEvent {
  /** Set if writing the event may be repeated. Absent: the store creates one. */
  readonly id?: EventId;
  readonly kind: EventKind;
  /** Null: an event of the service itself. */
  readonly partnerId: PartnerId | null;
  /** The subject: the id of a notification, a transaction, a key; null: none. */
  readonly subjectId: string | null;
  /** Shown as it is, so it never contains a secret or a card. */
  readonly detail: Readonly<Record<string, unknown>>;
}

/**
 * A refused report is kept as `detail.item`: what a cardholder bought. Lists and alerts, which go to people and systems
 * without a role here, do not have it.
 */
export function withoutReport(detail: NewEvent["detail"]): NewEvent["detail"] {
  return "item" in detail ? { ...detail, item: "(an operator sees it by the event's id)" } : detail;
}

/** The recorder of events. It never throws: an event that cannot be recorded now is logged, and recorded later. */
export interface EventSink {
  record(event: NewEvent): void;
}

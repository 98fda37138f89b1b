import type { EventId, PartnerId } from "./ids.ts";

/** What an operator should know of. Stable words: alerts, metrics and the console show them. */
export type EventKind =
  | "parked"
  | "in_doubt"
  | "reversal_refused"
  | "reversal_late"
  | "reversal_retried"
  | "reversal_resolved"
  | "settlement_mismatched"
  | "settlement_unanswered"
  | "settlement_late"
  | "settlement_aborted"
  | "upload_refused"
  | "late_answer"
  | "late_approval"
  | "delimiter_sent"
  | "settlement_refused"
  | "report_conflict"
  | "report_refused"
  | "settlement_differs"
  | "key_limit"
  | "partitions_short"
  | "history_waiting"
  | "oldest_pending"
  | "shards_unowned"
  | "partner_unreadable"
  | "breaker_open"
  | "breaker_closed"
  | "endpoint_gone"
  | "wrong_keys"
  | "key_from_elsewhere"
  | "certificate_ending"
  | "acquirer_down"
  | "acquirer_up"
  | "alert_test";

export interface NewEvent {
  /** Made once, where writing the event may be repeated. Absent: the store makes one. */
  readonly id?: EventId;
  readonly kind: EventKind;
  /** Null: of the service itself. */
  readonly partnerId: PartnerId | null;
  /** What it is about: the id of a notification, a transaction, a key; null: nothing that has one. */
  readonly subjectId: string | null;
  /** Shown as it is, so never with a secret or a card in it. */
  readonly detail: Readonly<Record<string, unknown>>;
}

/** Where events go. It never throws: an event that cannot be recorded now is logged. */
export interface EventSink {
  record(event: NewEvent): void;
}

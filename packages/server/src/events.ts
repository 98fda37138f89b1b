import type { PartnerId } from "./ids.ts";

/** What an operator should know of. Stable words: alerts, metrics and the console show them. */
export type EventKind =
  | "parked"
  | "in_doubt"
  | "reversal_refused"
  | "late_answer"
  | "late_approval"
  | "delimiter_sent"
  | "settlement_differs"
  | "key_limit"
  | "partitions_short"
  | "history_waiting"
  | "oldest_pending"
  | "breaker_open"
  | "breaker_closed"
  | "endpoint_gone"
  | "acquirer_down"
  | "acquirer_up";

export interface NewEvent {
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

import type { PartnerId } from "./ids.ts";

/** What an operator should know of. The words are stable: metrics, alerts and the console show them. */
export type EventKind =
  | "parked"
  | "in_doubt"
  | "late_answer"
  | "odd_value_sent"
  | "key_limit"
  | "partitions_short"
  | "breaker_open";

export interface NewEvent {
  readonly kind: EventKind;
  readonly partnerId: PartnerId;
  /** The transaction, notification or key it is about. */
  readonly subjectId: string | null;
  readonly detail: Readonly<Record<string, unknown>>;
}

/** Where events go. Never throws: an event that cannot be recorded now is logged. */
export interface EventSink {
  record(event: NewEvent): void;
}

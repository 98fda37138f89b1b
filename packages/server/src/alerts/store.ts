import type { EventId } from "../ids.ts";
import type { EventKind, NewEvent } from "../telemetry/events.ts";

/**
 * Events that are sent to the operator at once, each with its title for people. The others are only recorded. The page
 * of `runbookOf` says what to do, by kind.
 */
export const alertTitles = {
  parked: "Notifications were parked: their schedule is over",
  reversal_refused: "The acquirer refused a Reversal",
  reversal_late: "A Reversal is not answered",
  settlement_mismatched: "The acquirer counts a batch otherwise",
  settlement_unanswered: "A settlement is not answered",
  settlement_late: "An aborted settlement was accepted after all",
  upload_refused: "The acquirer refused a transaction of a batch upload",
  late_approval: "The acquirer approved after the time-out",
  answer_in_doubt: "The acquirer's answer does not say whether it approves",
  approval_unmatched: "The acquirer approved what nobody knows",
  settlement_refused: "The acquirer refused a settlement",
  report_conflict: "A switch reported other content under a known number",
  report_refused: "A switch's report was refused",
  intake_file_failed: "A file of completions cannot be read",
  clearing_exception: "A clearing file and the ledger disagree",
  clearing_file_failed: "A clearing file cannot be read",
  key_limit: "An encryption key is used up: rotate it",
  partitions_short: "History has room for a few days more",
  oldest_pending: "A notification is pending for too long",
  shards_unowned: "Nobody sends for some partners",
  wrong_keys: "Keys are tried",
  key_from_elsewhere: "A right key came from a wrong address",
  certificate_ending: "A certificate ends soon",
  partner_unreadable: "A partner's keys cannot be read",
  delivery_fault: "The service cannot handle a notification",
  egress_failed: "The egress proxy fails: deliveries wait",
  feed_failed: "Events cannot be written to the file or collector of PAYBELL_FEED",
  partner_message_failed: "A partner's contact accepts no messages",
  breaker_open: "An endpoint fails: its deliveries wait",
  breaker_closed: "An endpoint answers again",
  endpoint_gone: "A partner says that its URL is gone",
  acquirer_down: "No host of the acquirer is connected",
  acquirer_up: "A host of the acquirer is connected again",
  acquirer_signed_off: "A host of the acquirer signed off: its commands are refused",
  acquirer_signed_on: "A host of the acquirer signed on again",
  acquirer_advice: "A host of the acquirer sent an advice of its own, such as a reversal",
  acquirer_request_unknown: "A host of the acquirer asked what its profile does not know",
  mac_key_refused: "A MAC key of the acquirer's host could not be taken up",
  profile_ambiguous: "An acquirer's profile cannot tell two requests apart",
  restored: "The database was restored: deliveries are held",
  audit_failed: "The audit fails: actions are refused",
  content_changed: "Somebody changed a notification in the database",
  row_changed: "Somebody changed an operator or an API key in the database",
  audit_head: "The last entry of the audit: keep it for `paybell audit verify --expect`",
} as const satisfies Readonly<Partial<Record<EventKind, string>>>;

export const alertKinds = Object.keys(alertTitles) as readonly EventKind[];

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

import type { EventKind } from "../telemetry/events.ts";

/**
 * Events that are sent to the operator at once, by their severity in `docs/operator/runbook.md`, each with its title for
 * people. The others are only recorded. The page of `runbookOf` says what to do, by kind.
 */
export const alertTitles = {
  page: {
    key_limit: "An encryption key is used up: rotate it",
    partitions_short: "History has room for a few days more",
    shards_unowned: "Nobody sends for some partners",
    key_from_elsewhere: "A right key came from a wrong address",
    partner_unreadable: "A partner's keys cannot be read",
    egress_failed: "The egress proxy fails: deliveries wait",
    acquirer_down: "No host of the acquirer is connected",
    acquirer_signed_off: "A host of the acquirer signed off: its commands are refused",
    mac_key_refused: "A MAC key of the acquirer's host could not be taken up",
    restored: "The database was restored: deliveries are held",
    audit_failed: "The audit fails: actions are refused",
    content_changed: "Somebody changed a notification in the database",
    row_changed: "Somebody changed an operator or an API key in the database",
  },
  ticket: {
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
    oldest_pending: "A notification is pending for too long",
    wrong_keys: "Keys are tried",
    certificate_ending: "A certificate ends soon",
    delivery_fault: "The service cannot handle a notification",
    feed_failed: "Events cannot be written to the file or collector of PAYBELL_FEED",
    partner_message_failed: "A partner's contact accepts no messages",
    breaker_open: "An endpoint fails: its deliveries wait",
    endpoint_gone: "A partner says that its URL is gone",
    acquirer_advice: "A host of the acquirer sent an advice of its own, such as a reversal",
    acquirer_request_unknown: "A host of the acquirer asked what its profile does not know",
    profile_ambiguous: "An acquirer's profile cannot tell two requests apart",
  },
  info: {
    breaker_closed: "An endpoint answers again",
    acquirer_up: "A host of the acquirer is connected again",
    acquirer_signed_on: "A host of the acquirer signed on again",
    audit_head: "The last entry of the audit: keep it for `paybell audit verify --expect`",
  },
} as const satisfies Readonly<Record<string, Readonly<Partial<Record<EventKind, string>>>>>;

const { page, ticket, info } = alertTitles;
const titles: Readonly<Partial<Record<EventKind, string>>> = { ...page, ...ticket, ...info };

export const alertKinds = Object.keys(titles) as readonly EventKind[];

/** That of a test, too, which is sent and never recorded. */
export function alertTitle(kind: EventKind): string {
  return kind === "alert_test" ? "A test: alerts arrive here" : (titles[kind] ?? kind);
}

import { firstFailure } from "../errors.ts";
import { type EventKind, withoutReport } from "../events.ts";
import type { Alert } from "./store.ts";

/** Alerts of one kind that are sent together: an outage is one message with a count, not a thousand messages. */
export interface AlertGroup {
  /** The oldest alert. Its id identifies the group. */
  readonly first: Alert;
  /** The number of alerts, the first included. */
  readonly count: number;
  /** Milliseconds since 1970. */
  readonly lastAtMs: number;
  /** The next ones after the first, at most 100. */
  readonly others: readonly Alert[];
}

export interface AlertChannel {
  /** Shown in the log, so it contains no secret. */
  readonly name: string;
  /** Never rejects. @returns why it was not accepted; undefined if it was */
  send(group: AlertGroup, signal: AbortSignal): Promise<string | undefined>;
  close(): Promise<void>;
}

const othersMax = 100;

/** @param alerts of one kind, at least one */
export function groupOf(alerts: readonly Alert[]): AlertGroup {
  const shown = alerts.map((alert) => ({ ...alert, detail: withoutReport(alert.detail) }));
  const sorted = shown.toSorted((a, b) => a.atMs - b.atMs || (a.id < b.id ? -1 : 1));
  const [first, ...others] = sorted;
  if (first === undefined) throw new Error("a group has at least one alert");
  const lastAtMs = sorted.at(-1)?.atMs ?? first.atMs;
  return { first, count: sorted.length, lastAtMs, others: others.slice(0, othersMax) };
}

export function problemOf(error: unknown): string {
  const { message, name } = firstFailure(error);
  return message || name;
}

/** For people. The page of `runbookOf` says what to do, by kind. */
const titles: Readonly<Partial<Record<EventKind, string>>> = {
  parked: "Notifications were parked: their schedule is over",
  reversal_refused: "The acquirer refused a Reversal",
  reversal_late: "A Reversal is not answered",
  settlement_mismatched: "The acquirer counts a batch otherwise",
  settlement_unanswered: "A settlement is not answered",
  settlement_late: "An aborted settlement was accepted after all",
  settlement_refused: "The acquirer refused a settlement",
  upload_refused: "The acquirer refused a transaction of a batch upload",
  late_approval: "The acquirer approved after the time-out",
  answer_in_doubt: "The acquirer's answer does not say whether it approves",
  approval_unmatched: "The acquirer approved what nobody knows",
  report_conflict: "A switch reported other content under a known number",
  report_refused: "A switch's report was refused",
  intake_file_failed: "A file of completions cannot be read",
  key_limit: "An encryption key is used up: rotate it",
  partitions_short: "History has room for a few days more",
  oldest_pending: "A notification is pending for too long",
  shards_unowned: "Nobody sends for some partners",
  wrong_keys: "Keys are tried",
  key_from_elsewhere: "A right key came from a wrong address",
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
  alert_test: "A test: alerts arrive here",
};

/** The guide to what to do: its whole address, if that of the operators is known. */
export function runbookOf({ first }: AlertGroup, consoleUrl: string | null): string {
  return `${consoleUrl ?? ""}/docs/operator/runbook#${first.kind}`;
}

const linesMax = 10;

export function titleOf({ first, count }: AlertGroup): string {
  const title = titles[first.kind] ?? first.kind;
  return count === 1 ? title : `${title} (${count} times)`;
}

/** Describes what happened, and for which partners: the first ones by name. */
export function linesOf({ first, count, others }: AlertGroup): string[] {
  const shown = [first, ...others].slice(0, linesMax);
  const rest = count - shown.length;
  return [
    ...shown.map(lineOf),
    ...(rest > 0 ? [`… and ${rest} more: GET /operator/v1/events?state=${first.kind}`] : []),
  ];
}

function lineOf({ atMs, partnerId, subjectId, detail }: Alert): string {
  const about = [
    ...(partnerId === null ? [] : [`partner ${partnerId}`]),
    ...(subjectId === null ? [] : [`subject ${subjectId}`]),
    JSON.stringify(detail),
  ];
  return `${new Date(atMs).toISOString()}  ${about.join("  ")}`;
}

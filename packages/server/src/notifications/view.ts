import type { IpnKind, NotifiedCommand } from "@paybell/contract";
import type { NotificationId } from "../ids.ts";
import type {
  KeyUse,
  NotificationStatus,
  NotificationSubject,
  RecordedAttempt,
  RecordedEvent,
  WaitingFor,
} from "./store.ts";

/** A notification as the APIs and the console show it. Times are ISO 8601, UTC. Without a transaction it is a test. */
export interface NotificationSummary
  extends Omit<NotificationStatus, "callBackUrl" | "createdAtMs" | "outcomeAtMs" | "waiting" | "schedule"> {
  readonly kind: IpnKind;
  /** The earliest time; null unless it is pending, and while it waits for a person. */
  readonly nextAttemptAt: string | null;
  readonly createdAt: string;
  /** When it was accepted or parked. */
  readonly outcomeAt: string | null;
  /** While it is pending: the reason. It is sent at `nextAttemptAt` at the earliest. */
  readonly waiting: WaitingView | null;
}

/** A notification in a list, with the fields by which people recognize it. */
export interface ListedNotification extends NotificationSummary {
  readonly subject: NotificationSubject;
}

export interface NotificationDetail extends NotificationSummary {
  /** The command's own URL; null: the registered one. */
  readonly callBackUrl: string | null;
  readonly subject: NotificationSubject;
  /** Null unless it is pending and its schedule runs. */
  readonly schedule: ScheduleView | null;
  /** The oldest first; if there are more than 500, the newest. */
  readonly attempts: readonly AttemptView[];
}

/** A notification as the operator sees it. */
export interface InspectedNotification extends NotificationDetail {
  /** Events about it and its transaction, the oldest first; if there are more than 100, the newest. */
  readonly events: readonly EventView[];
}

/** Times are ISO 8601. */
export interface ScheduleView {
  readonly beganAt: string;
  /** If each of them fails. The last one is at the schedule's end. */
  readonly attempts: readonly string[];
  /** Then it is parked. */
  readonly endsAt: string;
}

export interface WaitingView {
  readonly because: WaitingFor["because"];
  /** For a partner that is not active. */
  readonly since: string | null;
  /** For a circuit: its endpoint. */
  readonly endpointId: string | null;
  readonly target: string | null;
  readonly reason: string | null;
  /** For an order: the notification that has to be accepted or parked first. */
  readonly after: NotificationId | null;
}

/** Results of deliveries that were sealed with one version of the encryption key. */
export interface KeyUseView extends Omit<KeyUse, "lastAcceptedAtMs"> {
  readonly lastAcceptedAt: string | null;
}

export interface EventView extends Omit<RecordedEvent, "atMs"> {
  readonly at: string;
}

export interface AttemptView extends Omit<RecordedAttempt, "startedAtMs" | "answer"> {
  readonly startedAt: string;
  /** The beginning of a response that was not 2xx, at most 4 KiB. Bytes that are not UTF-8 are shown as U+FFFD. */
  readonly answer: string | null;
}

export function summaryOf(status: NotificationStatus): NotificationSummary {
  const { id, callBackUrl: _, schedule: __, createdAtMs, outcomeAtMs, waiting, ...shown } = status;
  return {
    // First, where a person looks for it.
    id,
    ...shown,
    kind: kindOf(shown.command),
    nextAttemptAt: isoOrNull(waiting?.untilMs ?? null),
    createdAt: isoTime(createdAtMs),
    outcomeAt: isoOrNull(outcomeAtMs),
    waiting: waiting === null ? null : waitingView(waiting),
  };
}

function waitingView(waiting: WaitingFor): WaitingView {
  const nothing = { since: null, endpointId: null, target: null, reason: null, after: null };
  const common = { ...nothing, because: waiting.because };
  if ("sinceMs" in waiting) return { ...common, since: isoTime(waiting.sinceMs) };
  if ("target" in waiting) {
    return { ...common, endpointId: waiting.endpointId, target: waiting.target, reason: waiting.reason };
  }
  return "after" in waiting ? { ...common, after: waiting.after } : common;
}

/** The subject of a notification whose content was dropped. */
export const unknownSubject: NotificationSubject = {
  merchantTransId: null,
  amount: null,
  currency: null,
  tid: null,
  mid: null,
  merchantName: null,
  refId: null,
  approveCode: null,
  isoResponseCode: null,
  reqId: null,
  lastFour: null,
};

export function attemptView({ attemptNo, startedAtMs, answer, ...attempt }: RecordedAttempt): AttemptView {
  return {
    attemptNo,
    startedAt: isoTime(startedAtMs),
    ...attempt,
    answer: answer === null ? null : new TextDecoder().decode(answer),
  };
}

export function kindOf(command: NotifiedCommand): IpnKind {
  return command === "SETTLEMENT" ? "settlement" : "card";
}

export function isoTime(atMs: number): string {
  return new Date(atMs).toISOString();
}

export function isoOrNull(atMs: number | null): string | null {
  return atMs === null ? null : isoTime(atMs);
}

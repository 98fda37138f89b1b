import type { IpnKind, NotifiedCommand } from "@paybell/contract";
import type { FailureReason } from "../delivery/delivery.ts";
import type { EventKind } from "../events.ts";
import type { LeaseId, NotificationId, PartnerId, TransactionId } from "../ids.ts";
import type { NotificationState } from "../notification-state.ts";
import type { NotificationStatus, NotificationSubject, ParkedReason, RecordedAttempt, WaitingFor } from "./store.ts";

/** A notification as the APIs and the console show it. Times are ISO 8601, UTC. */
export interface NotificationSummary {
  readonly id: NotificationId;
  readonly partnerId: PartnerId;
  /** Null for a test notification. */
  readonly transactionId: TransactionId | null;
  readonly command: NotifiedCommand;
  readonly kind: IpnKind;
  readonly state: NotificationState;
  /** POSTs in the current schedule: a redelivery begins again at 0. */
  readonly attemptsMade: number;
  /** The earliest time; null unless it is pending, and while it waits for a person. */
  readonly nextAttemptAt: string | null;
  /** Why the last attempt failed; null once it was accepted. */
  readonly lastReason: ParkedReason | null;
  readonly createdAt: string;
  /** When it was accepted or parked. */
  readonly outcomeAt: string | null;
  /** While it is pending: the reason. It is sent at `nextAttemptAt` at the earliest. */
  readonly waiting: WaitingView | null;
  readonly partnerName: string;
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
export interface KeyUseView {
  readonly keyId: string;
  readonly accepted: number;
  readonly failed: number;
  readonly lastAcceptedAt: string | null;
}

export interface EventView {
  readonly kind: EventKind;
  readonly at: string;
  readonly detail: Readonly<Record<string, unknown>>;
}

export interface AttemptView {
  readonly attemptNo: number;
  readonly startedAt: string;
  readonly durationMs: number;
  readonly url: string;
  readonly address: string | null;
  readonly httpStatus: number | null;
  readonly reason: FailureReason | null;
  readonly detail: string | null;
  /** The beginning of a response that was not 2xx, at most 4 KiB. Bytes that are not UTF-8 are shown as U+FFFD. */
  readonly answer: string | null;
  readonly keyId: string | null;
  readonly instanceId: LeaseId;
}

export function summaryOf(standing: NotificationStatus): NotificationSummary {
  return {
    id: standing.id,
    partnerId: standing.partnerId,
    transactionId: standing.transactionId,
    command: standing.command,
    kind: kindOf(standing.command),
    state: standing.state,
    attemptsMade: standing.attemptsMade,
    nextAttemptAt: isoOrNull(standing.waiting?.untilMs ?? null),
    lastReason: standing.lastReason,
    createdAt: isoTime(standing.createdAtMs),
    outcomeAt: isoOrNull(standing.outcomeAtMs),
    waiting: standing.waiting === null ? null : waitingView(standing.waiting),
    partnerName: standing.partnerName,
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

export function attemptView(attempt: RecordedAttempt): AttemptView {
  return {
    attemptNo: attempt.attemptNo,
    startedAt: isoTime(attempt.startedAtMs),
    durationMs: attempt.durationMs,
    url: attempt.url,
    address: attempt.address,
    httpStatus: attempt.httpStatus,
    reason: attempt.reason,
    detail: attempt.detail,
    answer: attempt.answer === null ? null : new TextDecoder().decode(attempt.answer),
    keyId: attempt.keyId,
    instanceId: attempt.instanceId,
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

import type { IpnKind, NotifiedCommand } from "@paybell/contract";
import type { FailureReason } from "../delivery/store.ts";
import type { EventKind } from "../events.ts";
import type { LeaseId, NotificationId, PartnerId, TransactionId } from "../ids.ts";
import type {
  NotificationState,
  NotificationStatus,
  NotificationSubject,
  ParkedReason,
  RecordedAttempt,
  WaitingFor,
  WaitsFor,
} from "./store.ts";

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
  /** Null if no attempt is scheduled, or one is in progress. */
  readonly nextAttemptAt: string | null;
  /** Why the last attempt failed; null once it was accepted. */
  readonly lastReason: ParkedReason | null;
  readonly createdAt: string;
  /** When it was accepted or parked. */
  readonly outcomeAt: string | null;
  /** Why a pending one is not sent now, other than not being due yet. */
  readonly waitsFor: WaitsFor | null;
  readonly partnerName: string;
  /** For a settlement its totalAmount; null if there is none, or if it is too large to be read for a list. */
  readonly amount: string | null;
  readonly currency: string | null;
  readonly merchantTransId: string | null;
}

/** A notification in a list, with the fields by which people recognize it. */
export interface ListedNotification extends NotificationSummary {
  readonly subject: NotificationSubject;
}

export interface NotificationDetail extends NotificationSummary {
  /** The command's own URL; null: the registered one. */
  readonly callBackUrl: string | null;
  readonly subject: NotificationSubject;
  /** While it is pending: the reason. */
  readonly waiting: WaitingView | null;
  /** The oldest first; if there are more than 500, the newest. */
  readonly attempts: readonly AttemptView[];
}

/** A notification as the operator sees it. */
export interface InspectedNotification extends NotificationDetail {
  /** Events about it and its transaction, the oldest first; if there are more than 100, the newest. */
  readonly events: readonly EventView[];
}

export interface WaitingView {
  readonly because: WaitingFor["because"];
  /** The earliest time of the next step; null: when a person has acted. */
  readonly until: string | null;
  readonly since: string | null;
  /** For a circuit: its endpoint. */
  readonly endpointId: string | null;
  readonly target: string | null;
  readonly reason: string | null;
  /** For an order: the notification that has to be accepted or parked first. */
  readonly after: NotificationId | null;
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
    nextAttemptAt: isoOrNull(standing.nextAttemptAtMs),
    lastReason: standing.lastReason,
    createdAt: isoTime(standing.createdAtMs),
    outcomeAt: isoOrNull(standing.outcomeAtMs),
    waitsFor: standing.waitsFor,
    partnerName: standing.partnerName,
    amount: standing.amount,
    currency: standing.currency,
    merchantTransId: standing.merchantTransId,
  };
}

export function waitingView(waiting: WaitingFor): WaitingView {
  const { because, untilMs } = waiting;
  const nothing = { since: null, endpointId: null, target: null, reason: null, after: null };
  const common = { ...nothing, because, until: isoOrNull(untilMs) };
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

function isoOrNull(atMs: number | null): string | null {
  return atMs === null ? null : isoTime(atMs);
}

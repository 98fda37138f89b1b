import type { IpnKind, NotifiedCommand } from "@paybell/contract";
import type { NotificationStatus, NotificationSubject, RecordedAttempt, WaitingFor } from "./store.ts";

export interface NotificationDetail extends NotificationSummary {
  /** The command's own URL; null: the registered one. */
  readonly callBackUrl: string | null;
  readonly subject: NotificationSubject;
  /** Null unless it is pending and its schedule runs. */
  readonly schedule: { readonly beganAt: string; readonly attempts: readonly string[]; readonly endsAt: string } | null;
  /** The oldest first; if there are more than 500, the newest. */
  readonly attempts: readonly ReturnType<typeof attemptView>[];
}

/** A notification as the APIs and the console show it. Times are ISO 8601, UTC. Without a transaction it is a test. */
export type NotificationSummary = ReturnType<typeof summaryOf>;

export function summaryOf(status: NotificationStatus) {
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

function waitingView(waiting: WaitingFor) {
  const endpoint = "target" in waiting ? waiting : { endpointId: null, target: null, reason: null };
  return {
    because: waiting.because,
    /** For a partner that is not active. */
    since: "sinceMs" in waiting ? isoTime(waiting.sinceMs) : null,
    endpointId: endpoint.endpointId,
    target: endpoint.target,
    reason: endpoint.reason,
    /** For an order: the notification that has to be accepted or parked first. */
    after: "after" in waiting ? waiting.after : null,
  };
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

export function attemptView({ attemptNo, startedAtMs, answer, ...attempt }: RecordedAttempt) {
  return {
    attemptNo,
    startedAt: isoTime(startedAtMs),
    ...attempt,
    /** The beginning of a response that was not 2xx, at most 4 KiB. Bytes that are not UTF-8 are shown as U+FFFD. */
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

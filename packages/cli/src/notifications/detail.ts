import { printable } from "../printable.ts";

/** A notification as GET /v1/notifications/:id and the operator's answer it. */
export interface NotificationDetail extends NotificationSummary {
  readonly callBackUrl: string | null;
  readonly attempts: readonly ShownAttempt[];
  /** Only in the operator's answer. */
  readonly events?: readonly RecordedEvent[];
}

export interface RecordedEvent {
  readonly kind: string;
  readonly at: string;
  readonly detail: Readonly<Record<string, unknown>>;
}

export interface NotificationSummary {
  readonly id: string;
  readonly partnerId: string;
  readonly transactionId: string | null;
  readonly command: string;
  readonly kind: "card" | "settlement";
  readonly state: "pending" | "accepted" | "parked";
  readonly attemptsMade: number;
  readonly nextAttemptAt: string | null;
  readonly lastReason: string | null;
  readonly createdAt: string;
  readonly outcomeAt: string | null;
  readonly waitsFor: "partner_paused" | "partner_disabled" | "endpoint_gone" | "endpoint_open" | null;
  readonly partnerName: string;
  readonly amount: string | null;
  readonly currency: string | null;
  readonly merchantTransId: string | null;
}

export interface ShownAttempt {
  readonly attemptNo: number;
  readonly startedAt: string;
  readonly durationMs: number;
  readonly url: string;
  readonly address: string | null;
  readonly httpStatus: number | null;
  readonly reason: string | null;
  readonly detail: string | null;
  readonly answer: string | null;
}

const waiting: Readonly<Record<NonNullable<NotificationSummary["waitsFor"]>, (probeAt: string | null) => string>> = {
  partner_paused: () => "its partner is paused, and it leaves when the partner is resumed",
  partner_disabled: () => "its partner is disabled",
  endpoint_gone: () => "its URL answered 410, and is tried again when somebody closes the endpoint",
  endpoint_open: (probeAt) => `its endpoint fails, and is tried again at ${probeAt}`,
};

/** Amount and reference: `150000 VND order-1`. */
export function subject({ amount, currency, merchantTransId }: NotificationSummary): readonly [string, string] {
  return [[amount, currency].filter((part) => part).join(" "), printable(merchantTransId ?? "")];
}

/** Its status, in one sentence. */
export function statusText({ state, nextAttemptAt, outcomeAt, attemptsMade, waitsFor }: NotificationSummary): string {
  if (state === "accepted") return `accepted at ${outcomeAt}, attempt ${attemptsMade}`;
  if (state === "parked") return `parked after ${attemptsMade} attempts: kept, and sent again when you ask for it`;
  if (waitsFor !== null) return `pending: ${waiting[waitsFor](nextAttemptAt)}`;
  return attemptsMade === 0 ? "pending, not tried yet" : `pending, tried again at ${nextAttemptAt}`;
}

/** `attempt 1  →  https://… 204  12 ms`, and why where it was not accepted. */
export function attemptLines(attempt: ShownAttempt): string[] {
  const { attemptNo, url, httpStatus, durationMs, reason, detail, answer } = attempt;
  const took = `${Math.round(durationMs)} ms`;
  const why = reason === null ? [] : [[reason, detail].filter((text) => text !== null && text !== "").join(": ")];
  return [
    printable(`attempt ${attemptNo}  → ${url}  ${httpStatus ?? "no status"}  ${took}`),
    ...why.map((line) => `           ${printable(line)}`),
    ...(answer === null || answer === "" ? [] : [`           it answered: ${printable(answer)}`]),
  ];
}

/** `2026-11-21T10:00:00.000Z  parked  {"reason":"tls"}` */
export function eventLine({ kind, at, detail }: RecordedEvent): string {
  return printable(`${at}  ${kind}  ${JSON.stringify(detail)}`);
}

import type { ListedNotification, Notification, NotificationDetail } from "@paybell/partner/client";
import { printable } from "../printable.ts";

type Attempt = NotificationDetail["attempts"][number];

/** An event of a notification, in the operator's answer only. */
export interface NotificationEvent {
  readonly kind: string;
  readonly at: string;
  readonly detail: Readonly<Record<string, unknown>>;
}

type WaitingBecause = NonNullable<Notification["waiting"]>["because"];

const waitingFor: Readonly<Record<WaitingBecause, (one: Notification) => string>> = {
  paused: () => "pending: its partner is paused, and it leaves when the partner is resumed",
  disabled: () => "pending: its partner is disabled",
  gone: () => "pending: its URL answered 410, and is tried again when somebody closes the endpoint",
  circuit: ({ nextAttemptAt, waiting }) =>
    `pending: its endpoint ${printable(waiting?.target ?? "")} fails (${waiting?.reason ?? "no reason"}), ` +
    `and is tried again at ${nextAttemptAt}`,
  order: ({ waiting }) => `pending: it leaves after ${waiting?.after}, an earlier one of its chain`,
  retry: ({ nextAttemptAt }) => `pending, tried again at ${nextAttemptAt}`,
  turn: () => "pending: it is due, and waits for a free slot or its partner's rate",
};

/** Amount and reference: `150000 VND order-1`. */
export function subjectText({ subject }: ListedNotification): readonly [string, string] {
  const { amount, currency, merchantTransId } = subject;
  return [[amount, currency].filter((part) => part).join(" "), printable(merchantTransId ?? "")];
}

/** Its status, in one sentence. */
export function statusText(one: Notification): string {
  const { state, outcomeAt, attemptsMade, waiting } = one;
  if (state === "accepted") return `accepted at ${outcomeAt}, attempt ${attemptsMade}`;
  if (state === "parked") return `parked after ${attemptsMade} attempts: kept, and sent again when you ask for it`;
  return waitingFor[waiting?.because ?? "turn"](one);
}

/** `attempt 1  →  https://… 204  12 ms`, and why where it was not accepted. */
export function attemptLines(attempt: Attempt): string[] {
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
export function eventLine({ kind, at, detail }: NotificationEvent): string {
  return printable(`${at}  ${kind}  ${JSON.stringify(detail)}`);
}

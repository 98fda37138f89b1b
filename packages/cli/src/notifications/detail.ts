import type { ListedNotification, Notification, NotificationDetail, NotificationPage } from "@paybell/partner/client";
import type { Api } from "../client/api.ts";
import { bodyOf } from "../listen/opened.ts";
import { printable } from "../shell/output.ts";

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

/** The POST of a notification, as it would be made now: the input of `paybell open`. */
export interface SealedPost {
  readonly body: string;
  readonly headers: Readonly<Record<string, string>>;
}

const pageItems = 500;
/** Ids and times are made a moment before the commit that orders them. */
const outOfOrderMs = 60_000;

/**
 * Searches the pull API, from the oldest on; undefined if it is no longer stored. @param looked called with the number
 * skipped so far
 */
export async function findSealed(
  api: Api,
  { id, createdAt }: NotificationDetail,
  looked: (count: number) => void,
): Promise<SealedPost | undefined> {
  const untilMs = Date.parse(createdAt) + outOfOrderMs;
  let after: string | undefined;
  let count = 0;
  for (;;) {
    const { items, next } = await api.get<NotificationPage>("/v1/notifications", { after, limit: pageItems });
    const found = items.find((item) => item.id === id);
    if (found !== undefined) return { body: bodyOf(found), headers: found.headers };
    const last = items.at(-1);
    if (last === undefined || Date.parse(last.createdAt) > untilMs) return undefined;
    count += items.length;
    looked(count);
    after = next;
  }
}

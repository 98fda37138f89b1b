import { responseMeaning } from "@paybell/contract";
import type { ListedNotification, NotificationDetail, ParkedOfPartner, Trouble, Waiting } from "../api/operations.ts";
import type { StateInWords } from "../display/state.tsx";
import { clockTime, duration } from "../display/time.tsx";

export const reasons: Readonly<Record<string, string>> = {
  no_callback_url: "no callback URL is registered",
  address_refused: "its address is not among the partner's callback addresses",
  dns: "its name cannot be resolved",
  connect: "it cannot be connected to",
  connect_timeout: "it did not take the connection in time",
  tls: "its certificate or TLS is not accepted",
  timeout: "it did not answer in time",
  reset: "it cut the connection",
  bad_response: "its answer is not HTTP",
  redirect: "it redirects, and redirects are not followed",
  status: "its answer was not 2xx",
  too_large: "the notification is too large",
  gone: "it answered 410 Gone",
  rate_limited: "it answered 429 Too Many Requests",
  key_exhausted: "its encryption key has reached its limit: rotate it",
  content_changed: "somebody changed it in the database",
  egress: "our egress proxy failed",
  internal: "the service itself failed",
  retention: "its day of history was dropped before it could be tried",
  restored: "it was pending in a backup that was restored",
  endpoint: "its endpoint was tripped for too long",
};

/** Why an attempt failed, as a clause. */
export function reasonInWords(reason: string | null, httpStatus: number | null = null): string {
  if (httpStatus !== null) return `it answered ${httpStatus}`;
  if (reason === null) return "the reason is not known";
  return reasons[reason] ?? reason.replaceAll("_", " ");
}

/** Why an attempt failed, as a clause: of a certificate, what is wrong with it. */
export function failureInWords({ reason, httpStatus, detail }: NotificationDetail["attempts"][number]): string {
  if (reason === "tls" && detail) return detail.charAt(0).toLowerCase() + detail.slice(1).replace(/\.$/, "");
  return reasonInWords(reason, httpStatus);
}

/** The result of the command that a notification reports. Undefined where it is not known. */
export function resultOf({
  command,
  subject: { isoResponseCode: code },
}: Pick<ListedNotification, "command" | "subject">): { isGood: boolean; word: string; meaning: string } | undefined {
  if (!code) return undefined;
  const [good, bad] = command === "SETTLEMENT" ? ["settled", "not settled"] : ["approved", "declined"];
  const isGood = code === "00";
  return { isGood, word: isGood ? good : `${bad} (${code})`, meaning: responseMeaning(code) };
}

/** The first line of a notification: whether they got it, and if not, why. */
export function headlineOf(one: NotificationDetail, nowMs: number): StateInWords {
  const last = one.attempts.at(-1);
  if (one.state === "accepted") {
    const at = Date.parse(one.outcomeAt ?? one.createdAt);
    const tookMs = at - Date.parse(one.createdAt);
    const nth = one.attempts.length > 1 ? `at the ${ordinal(one.attempts.length)} attempt` : "at the first attempt";
    const result = resultOf(one);
    const outcome = result === undefined ? "" : `: ${result.word}${result.isGood ? "" : `, ${result.meaning}`}`;
    return { tone: "good", word: `Delivered ${nth}, ${clockTime(at, nowMs)} (after ${duration(tookMs)})${outcome}` };
  }
  if (one.state === "parked") {
    const at = Date.parse(one.outcomeAt ?? one.createdAt);
    const after = duration(at - Date.parse(one.createdAt));
    const why = last?.reason == null ? reasonInWords(one.lastReason) : failureInWords(last);
    return { tone: "bad", word: `Parked after ${after} and ${attempts(one.attemptsMade)}: ${why}` };
  }
  return { tone: "wait", word: waitingText(one, one.waiting, nowMs) };
}

function waitingText(one: NotificationDetail, waiting: Waiting | null, nowMs: number): string {
  const last = one.attempts.at(-1);
  const failed = last === undefined ? "" : `${failureInWords(last)}; `;
  const next = one.nextAttemptAt === null ? "" : nextTry(Date.parse(one.nextAttemptAt), nowMs);
  switch (waiting?.because) {
    case "paused":
      return `Waiting: the partner is paused since ${clockTime(Date.parse(waiting.since ?? one.createdAt), nowMs)}`;
    case "disabled":
      return "Waiting: the partner is disabled, and nothing is delivered to it";
    case "gone":
      return "Waiting: its URL answered 410 Gone; deliveries continue when its circuit is closed manually";
    case "circuit":
      return `Waiting: ${last !== undefined && last.reason === waiting.reason ? failureInWords(last) : reasonInWords(waiting.reason)}; its circuit is tripped${next === "" ? "" : `, ${next}`}`;
    case "order":
      return "Waiting for an earlier notification of its chain";
    case "retry":
      return `Waiting: ${failed}${next}`;
    default:
      return `Due now: it waits for a free slot or its partner's pace`;
  }
}

function nextTry(atMs: number, nowMs: number): string {
  return atMs - nowMs < 1_000 ? "next try now" : `next try in ${duration(atMs - nowMs)}`;
}

function attempts(count: number): string {
  return count === 1 ? "1 attempt" : `${count} attempts`;
}

function ordinal(count: number): string {
  const words = ["first", "second", "third", "fourth", "fifth"];
  const last = count % 10;
  const suffix = count % 100 > 10 && count % 100 < 14 ? "th" : (["th", "st", "nd", "rd"][last] ?? "th");
  return words[count - 1] ?? `${count}${suffix}`;
}

/** Why a partner's notifications wait, as a clause. */
export function problemInWords({ because, reason, httpStatus }: Trouble): string {
  if (because === "paused" || because === "disabled") return `the partner is ${because}`;
  const last = reason === null && httpStatus === null ? "they have not been tried" : reasonInWords(reason, httpStatus);
  return because === "circuit" ? `${last}; its circuit is tripped` : last;
}

/** The same as sentences: how many wait, why, since when, until when. */
export function troubleInWords(trouble: Trouble, whose: "its" | "your", nowMs: number): string {
  const { because, httpStatus, waiting, since, nextAttemptAt, parkingAt } = trouble;
  const sinceWords = since === null ? "" : ` since ${clockTime(Date.parse(since), nowMs)}`;
  const wait = `${countInWords(waiting)} ${waiting === 1 ? "waits" : "wait"}`;
  if (because === "paused" || because === "disabled") {
    const who = whose === "its" ? "the partner is" : "your deliveries are";
    return `${wait}, because ${who} ${because}${sinceWords}. Nothing is parked meanwhile.`;
  }
  const why =
    httpStatus === null
      ? `${wait}${sinceWords} for ${whose} server: ${problemInWords(trouble)}`
      : `${wait}, because ${whose} server has answered ${httpStatus}${sinceWords}`;
  const next =
    nextAttemptAt === null ? "nothing is sent until its circuit is closed" : nextTry(Date.parse(nextAttemptAt), nowMs);
  const parking = parkingAt === null ? "" : `; parking begins ${momentInWords(Date.parse(parkingAt), nowMs)}`;
  return `${why}. ${next.charAt(0).toUpperCase()}${next.slice(1)}${parking}.`;
}

/** Why a partner's notifications are parked, as a sentence. */
export function parkedInWords(of: ParkedOfPartner, whose: "its" | "your", nowMs: number): string {
  const { parked, reason, httpStatus, since, acceptedAt } = of;
  const newest = parked === 1 ? "" : ", the newest";
  const at = since === null ? "" : `${newest} at ${clockTime(Date.parse(since), nowMs)}`;
  const why = httpStatus === null ? reasonInWords(reason) : `${whose} server answered ${httpStatus}`;
  const who = `${whose === "its" ? "when a person sends" : "when you send"} ${parked === 1 ? "it" : "them"} again`;
  const itIs = parked === 1 ? "It is kept, and goes out" : "They are kept, and go out";
  const receives =
    acceptedAt === null
      ? ""
      : ` ${whose === "its" ? "Its" : "Your"} server accepts others again, the last at ${clockTime(Date.parse(acceptedAt), nowMs)}.`;
  return `${countInWords(parked)} ${parked === 1 ? "is" : "are"} parked${at}, because ${why}.${receives} ${itIs} ${who}.`;
}

/** A count that the API bounds. */
export function countInWords(count: number): string {
  return count >= 1_000 ? "1,000 or more" : String(count);
}

function momentInWords(atMs: number, nowMs: number): string {
  return atMs <= nowMs ? "now" : `at ${clockTime(atMs, nowMs)}`;
}

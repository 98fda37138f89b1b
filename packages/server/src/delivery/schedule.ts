import type { PartnerSettings, Pause } from "../partners/partner.ts";
import type { FailureReason } from "./store.ts";

/** What follows from a failed attempt. */
export type NextAttempt = { readonly kind: "retry"; readonly delayMs: number } | { readonly kind: "parked" };

export interface FailedAttempt {
  /** Real POSTs so far, this one included: 1 after the first. */
  readonly attemptsMade: number;
  /** Since when the schedule runs: creation, or the redelivery that was asked for. */
  readonly scheduleStartMs: number;
  readonly nowMs: number;
  /** Of the partner: its schedules stand still meanwhile. */
  readonly pauses: readonly Pause[];
  /** What the answer asked for; counts with 429 and 503 only. */
  readonly retryAfterMs?: number | undefined;
}

/** Each wait is spread by this much to either side, so that what failed together does not come back together. */
export const jitter = 0.15;
/** A Retry-After is honoured up to one hour, or the next step where that is longer. */
export const retryAfterMaxMs = 3_600_000;

/** How long a notification is tried before it is parked: the sum of the steps. */
export function scheduleLengthMs(retryS: readonly number[]): number {
  return retryS.reduce((sumS, stepS) => sumS + stepS, 0) * 1_000;
}

/** Whose schedule it is. */
interface Scheduled {
  readonly settings: Pick<PartnerSettings, "retry">;
  readonly pauses: readonly Pause[];
}

/**
 * How long ago a notification was created, say, whose schedule is just over now: the schedule's length, and the pauses
 * in which it did not run.
 */
export function overdueAfterMs({ settings, pauses }: Scheduled, nowMs: number): number {
  let leftMs = scheduleLengthMs(settings.retry);
  let atMs = nowMs;
  for (const [fromMs, toMs] of pauses.toReversed()) {
    if (atMs - toMs >= leftMs) break;
    leftMs -= atMs - toMs;
    atMs = fromMs;
  }
  return nowMs - atMs + leftMs;
}

function pausedMs(sinceMs: number, pauses: readonly Pause[]): number {
  return pauses.reduce((sumMs, [fromMs, toMs]) => sumMs + Math.max(0, toMs - Math.max(fromMs, sinceMs)), 0);
}

/**
 * When to try again. Never later than the schedule's end, on which the last attempt lies; parked once the end is
 * reached, however many attempts it were. An attempt that was repeated more often than there are steps (a restart, a
 * breaker) goes on by the last step.
 *
 * @param retryS the partner's steps, in seconds, at least one
 * @param random from 0 to less than 1
 */
export function nextAttempt(retryS: readonly number[], failed: FailedAttempt, random: number): NextAttempt {
  const { scheduleStartMs, nowMs, pauses } = failed;
  const leftMs = scheduleStartMs + scheduleLengthMs(retryS) + pausedMs(scheduleStartMs, pauses) - nowMs;
  if (leftMs <= 0) return { kind: "parked" };
  const stepMs = (retryS[Math.min(failed.attemptsMade, retryS.length) - 1] ?? retryS.at(-1) ?? 0) * 1_000;
  const spreadMs = stepMs * (1 - jitter + 2 * jitter * random);
  const askedMs = Math.min(failed.retryAfterMs ?? 0, Math.max(retryAfterMaxMs, stepMs));
  const waitMs = Math.max(spreadMs, askedMs);
  // Jitter that went below its steps leaves a rest before the end: the last step is drawn out to it, or the schedule
  // would end early with time still agreed.
  const isLast = failed.attemptsMade >= retryS.length;
  return { kind: "retry", delayMs: isLast ? leftMs : Math.min(waitMs, leftMs) };
}

/** An answer's meaning: undefined for 2xx, which is acceptance whatever the body says. */
export function statusFailure(status: number): { readonly reason: FailureReason; readonly detail: string } | undefined {
  if (status >= 200 && status < 300) return undefined;
  if (status >= 300 && status < 400) {
    return {
      reason: "redirect",
      detail: `Answered ${status}: redirects are never followed. Register the URL it points to.`,
    };
  }
  if (status === 410) {
    return { reason: "gone", detail: "Answered 410: the partner says that this URL is gone for good." };
  }
  if (status === 413) {
    return {
      reason: "too_large",
      detail:
        "Answered 413: the partner's server, or a proxy before it, refuses bodies of this size. " +
        "Raise its limit (a settlement of 50,000 entries is about 5 MB), then redeliver.",
    };
  }
  if (status === 429)
    return { reason: "rate_limited", detail: "Answered 429: too many at once. Lower maxPerSecond or maxInFlight." };
  return { reason: "status", detail: `Answered ${status}.` };
}

/** Whether a status may ask for a wait: section "Retries" of the contract's decisions, 429 and 503. */
export function mayAskToWait(status: number): boolean {
  return status === 429 || status === 503;
}

/** Reads Retry-After: whole seconds, or an HTTP date. Undefined when it is neither. */
export function readRetryAfterMs(value: string, nowMs: number): number | undefined {
  const text = value.trim();
  if (/^[0-9]{1,10}$/.test(text)) return Number(text) * 1_000;
  // Date.parse takes much more than an HTTP date: all of its three forms name the day first.
  if (!/^[A-Z][a-z]{2,8},? /.test(text)) return undefined;
  const atMs = Date.parse(text);
  return Number.isNaN(atMs) ? undefined : Math.max(0, atMs - nowMs);
}

import { scheduleSeconds } from "../../config/retry-schedule.ts";
import type { PartnerSettings, Pause } from "../../partners/partner.ts";
import { type Delivery, scheduleAgeMs } from "../delivery.ts";

/** The consequence of a failed attempt. */
export type NextAttempt = { readonly kind: "retry"; readonly delayMs: number } | { readonly kind: "parked" };

/** A failed attempt, as far as it decides about the next one. */
export interface FailedAttempt {
  readonly nowMs: number;
  /** The wait that the response asked for. It counts with 429 and 503 only. */
  readonly retryAfterMs?: number | undefined;
  /** No later attempt can succeed: the command's own URL answered 410, or the stored content was changed. */
  readonly isFinal?: boolean;
}

/**
 * Each wait varies by this share in either direction, so that attempts that failed together do not come back together.
 */
export const jitter = 0.15;
/** Retry-After is honoured up to one hour, or the next step if that is longer. */
export const retryAfterMaxMs = 3_600_000;

/** The partner fields that determine a schedule. */
interface Scheduled {
  readonly settings: Pick<PartnerSettings, "retry">;
  readonly pauses: readonly Pause[];
}

/** When the schedule that began at `startMs` is over: the pauses since then extend it. */
export function scheduleEndMs({ settings, pauses }: Scheduled, startMs: number): number {
  const pausedMs = pauses.reduce((sumMs, [fromMs, toMs]) => sumMs + Math.max(0, toMs - Math.max(fromMs, startMs)), 0);
  return startMs + scheduleSeconds(settings.retry) * 1_000 + pausedMs;
}

/** The rest of a delivery's schedule; 0 or less: it is over. @param nowMs by this machine's clock */
export function leftOfScheduleMs(
  partner: Scheduled,
  delivery: Pick<Delivery, "scheduleStartMs" | "clockAheadMs">,
  nowMs: number,
): number {
  const { scheduleStartMs } = delivery;
  return scheduleEndMs(partner, scheduleStartMs) - scheduleStartMs - scheduleAgeMs(delivery, nowMs);
}

const postponementMinMs = 1_000;
const postponementMaxMs = 300_000;

/**
 * The delay of a delivery whose URL accepts nothing, while others of its queue are sent: a tenth of its age, so that a
 * large backlog is not postponed again and again. It ends with the schedule.
 */
export function postponementMs(ageMs: number, leftMs = Number.POSITIVE_INFINITY): number {
  return Math.max(postponementMinMs, Math.min(ageMs / 10, postponementMaxMs, leftMs));
}

/**
 * Decides when to try again: never later than the schedule's end, where the last attempt is. A notification is parked
 * once the end is reached, whatever the number of attempts, or its own URL is gone. If there were more attempts than
 * steps (after a restart, or a tripped circuit), the last step repeats.
 *
 * @param partner its steps are in seconds, at least one
 * @param delivery as it was before the attempt
 * @param random from 0 to less than 1
 */
export function nextAttempt(
  partner: Scheduled,
  delivery: Pick<Delivery, "attemptsMade" | "asked" | "scheduleStartMs" | "clockAheadMs">,
  { nowMs, retryAfterMs = 0, isFinal = false }: FailedAttempt,
  random: number,
): NextAttempt {
  const { attemptsMade, asked = 0 } = delivery;
  const leftMs = leftOfScheduleMs(partner, delivery, nowMs);
  if (leftMs <= 0 || isFinal) return { kind: "parked" };
  const retryS = partner.settings.retry;
  const stepsMade = Math.max(1, attemptsMade + 1 - asked);
  const stepMs = (retryS[Math.min(stepsMade, retryS.length) - 1] ?? retryS.at(-1) ?? 0) * 1_000;
  const spreadMs = stepMs * (1 - jitter + 2 * jitter * random);
  const askedMs = Math.min(retryAfterMs, Math.max(retryAfterMaxMs, stepMs));
  const waitMs = Math.max(spreadMs, askedMs);
  // If jitter shortened the steps, the last one is extended to the end: otherwise the schedule would end before the
  // agreed time.
  const isLast = stepsMade >= retryS.length;
  return { kind: "retry", delayMs: isLast ? leftMs : Math.min(waitMs, leftMs) };
}

/**
 * When a notification is tried, if each attempt fails: from the next one on, to the last one at the schedule's end.
 * Jitter, and what an answer asks for, move them.
 *
 * @param stepsMade steps once the next attempt was made
 */
export function comingAttemptsMs(
  retryS: readonly number[],
  next: { readonly atMs: number; readonly stepsMade: number; readonly endMs: number },
): readonly number[] {
  const times = [next.atMs];
  for (let step = Math.max(1, next.stepsMade); step < retryS.length; step += 1) {
    times.push((times.at(-1) ?? 0) + (retryS[step - 1] ?? 0) * 1_000);
  }
  return [...times.filter((atMs) => atMs < next.endMs), Math.max(next.atMs, next.endMs)];
}

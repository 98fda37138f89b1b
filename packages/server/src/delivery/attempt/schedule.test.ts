import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { retryBounds, scheduleSeconds } from "../../config/retry-schedule.ts";
import type { Pause } from "../../partners/partner.ts";
import { defaultSettings } from "../../partners/settings/settings.ts";
import { comingAttemptsMs, jitter, nextAttempt as nextOf, retryAfterMaxMs } from "./schedule.ts";

const retrySteps = fc.array(fc.integer({ min: 1, max: retryBounds.stepSecondsMax }), {
  minLength: 1,
  maxLength: retryBounds.stepsMax,
});
const random = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });

interface Failed {
  /** With this one. */
  readonly attemptsMade: number;
  readonly asked?: number;
  readonly scheduleStartMs: number;
  readonly nowMs: number;
  readonly pauses: readonly Pause[];
  readonly retryAfterMs?: number | undefined;
}

function nextAttempt(retry: readonly number[], { attemptsMade, pauses, ...failed }: Failed, chance: number) {
  return nextOf({ settings: { retry }, pauses }, { ...failed, attemptsMade: attemptsMade - 1 }, failed, chance);
}

test("attempts that a person asked for leave the schedule at its step", () => {
  const retryS = [5, 30, 120, 600];
  const failed = { scheduleStartMs: 0, nowMs: 0, pauses: [] };
  for (let asked = 0; asked <= 12; asked += 1) {
    expect(nextAttempt(retryS, { ...failed, attemptsMade: 2 + asked, asked }, 0.5)).toEqual(
      nextAttempt(retryS, { ...failed, attemptsMade: 2 }, 0.5),
    );
  }
});

/** Fails at once, repeatedly, until it is parked. Returns the times of the attempts, from the start of the schedule. */
function attemptsUntilParked(retryS: readonly number[], randoms: readonly number[], retryAfterMs?: number): number[] {
  const startMs = 1_000_000;
  const madeMs = [0];
  for (let made = 1; made <= 200; made += 1) {
    const nowMs = startMs + (madeMs.at(-1) ?? 0);
    const failed = { attemptsMade: made, scheduleStartMs: startMs, nowMs, pauses: [], retryAfterMs };
    const next = nextAttempt(retryS, failed, randoms[made % randoms.length] ?? 0.5);
    if (next.kind === "parked") return madeMs;
    madeMs.push(nowMs - startMs + next.delayMs);
  }
  throw new Error("never parked");
}

test("the coming attempts are those that are made if each fails, whatever was made before", () => {
  fc.assert(
    fc.property(retrySteps, fc.nat(29), (retryS, at) => {
      // Jitter in its middle does not move them.
      const madeMs = attemptsUntilParked(retryS, [0.5]);
      const next = Math.min(at + 1, madeMs.length - 1);
      const coming = comingAttemptsMs(retryS, {
        atMs: madeMs[next] ?? 0,
        stepsMade: next + 1,
        endMs: madeMs.at(-1) ?? 0,
      });
      expect(coming.map(Math.round)).toEqual(madeMs.slice(next).map(Math.round));
    }),
  );
});

describe("the schedule", () => {
  test("of the contract's decisions takes about three days", () => {
    expect(scheduleSeconds(defaultSettings.retry) * 1_000).toBe(272_555_000);
    expect(attemptsUntilParked(defaultSettings.retry, [0.5]).map((ms) => ms / 1_000)).toEqual([
      0, 5, 35, 155, 755, 2_555, 6_155, 13_355, 27_755, 56_555, 99_755, 186_155, 272_555,
    ]);
  });

  test("makes its last attempt at its end, and parks exactly there", () => {
    fc.assert(
      fc.property(retrySteps, fc.array(random, { minLength: 1, maxLength: 30 }), (retryS, randoms) => {
        const madeMs = attemptsUntilParked(retryS, randoms);
        expect(madeMs.at(-1)).toBeCloseTo(scheduleSeconds(retryS) * 1_000, 3);
        expect(madeMs.length).toBeLessThanOrEqual(retryS.length + 1);
      }),
    );
  });

  test("spreads each step by at most 15 %, and never passes its end", () => {
    fc.assert(
      fc.property(retrySteps, random, fc.nat(), fc.nat(), (retryS, chance, madeSeed, elapsedSeed) => {
        const attemptsMade = 1 + (madeSeed % retryS.length);
        const lengthMs = scheduleSeconds(retryS) * 1_000;
        const elapsedMs = elapsedSeed % lengthMs;
        const failed = { attemptsMade, scheduleStartMs: 5_000, nowMs: 5_000 + elapsedMs, pauses: [] };
        const next = nextAttempt(retryS, failed, chance);
        if (next.kind === "parked") throw new Error("parked before its end");
        const stepMs = (retryS[attemptsMade - 1] ?? 0) * 1_000;
        expect(next.delayMs).toBeLessThanOrEqual(lengthMs - elapsedMs);
        if (attemptsMade === retryS.length) expect(next.delayMs).toBe(lengthMs - elapsedMs);
        else {
          expect(next.delayMs).toBeGreaterThanOrEqual(Math.min(stepMs * (1 - jitter) - 1e-6, lengthMs - elapsedMs));
          expect(next.delayMs).toBeLessThanOrEqual(stepMs * (1 + jitter) + 1e-6);
        }
      }),
    );
  });

  test("parks when its length has passed, whatever the number of attempts", () => {
    fc.assert(
      fc.property(retrySteps, fc.integer({ min: 1, max: 1_000 }), fc.nat(1e9), (retryS, attemptsMade, lateMs) => {
        const nowMs = 7 + scheduleSeconds(retryS) * 1_000 + lateMs;
        expect(nextAttempt(retryS, { attemptsMade, scheduleStartMs: 7, nowMs, pauses: [] }, 0.5)).toEqual({
          kind: "parked",
        });
      }),
    );
  });

  test("stands still while the partner is paused", () => {
    const failed = { attemptsMade: 1, scheduleStartMs: 0, nowMs: 10_000 };
    const next = (pauses: readonly [number, number][]) => nextAttempt([8], { ...failed, pauses }, 0.5);
    expect(next([])).toEqual({ kind: "parked" });
    expect(next([[1_000, 9_000]])).toEqual({ kind: "retry", delayMs: 6_000 });
    // A notification created during the pause has its whole schedule after it.
    expect(nextAttempt([8], { ...failed, scheduleStartMs: 5_000, pauses: [[1_000, 9_000]] }, 0.5)).toEqual({
      kind: "retry",
      delayMs: 7_000,
    });
  });

  test("honours Retry-After up to an hour, or the step if that is longer", () => {
    const wait = (retryS: readonly number[], retryAfterMs: number, chance = 0.5) =>
      nextAttempt(retryS, { attemptsMade: 1, scheduleStartMs: 0, nowMs: 0, pauses: [], retryAfterMs }, chance);
    const long = [5, 86_400, 86_400];
    expect(wait(long, 60_000)).toEqual({ kind: "retry", delayMs: 60_000 });
    expect(wait(long, 1_000)).toEqual({ kind: "retry", delayMs: 5_000 });
    expect(wait(long, 1e9)).toEqual({ kind: "retry", delayMs: retryAfterMaxMs });
    // Also where jitter shortens the step.
    expect(wait([7_200, 86_400], 1e9, 0)).toEqual({ kind: "retry", delayMs: 7_200_000 });
    expect(wait([5, 60], 1e9)).toEqual({ kind: "retry", delayMs: 65_000 });
  });

  test("ends on time although each response asks for an hour", () => {
    fc.assert(
      fc.property(retrySteps, random, (retryS, chance) => {
        const madeMs = attemptsUntilParked(retryS, [chance], retryAfterMaxMs);
        expect(madeMs.at(-1)).toBeCloseTo(scheduleSeconds(retryS) * 1_000, 3);
      }),
    );
  });
});

/** Seconds to wait after each failed attempt: the default of the service, and of a partner without a schedule. */
export const defaultRetrySeconds: readonly number[] = [
  // 5 s, 30 s, 2 min, 10 min, 30 min, 1 h, 2 h, 4 h, 8 h, 12 h, 24 h, 24 h: about three days.
  5, 30, 120, 600, 1_800, 3_600, 7_200, 14_400, 28_800, 43_200, 86_400, 86_400,
];

export const retryBounds = { stepsMax: 30, stepSecondsMax: 86_400 } as const;

/** The time for which a notification is tried before it is parked: the sum of the steps. */
export function scheduleSeconds(retrySeconds: readonly number[]): number {
  return retrySeconds.reduce((sum, seconds) => sum + seconds, 0);
}

/** The same in days. */
export function scheduleDays(retrySeconds: readonly number[]): number {
  return scheduleSeconds(retrySeconds) / 86_400;
}

/** History is kept this much longer than the longest schedule. */
export const historyMarginDays = 7;

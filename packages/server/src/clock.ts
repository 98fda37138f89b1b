/** Time, passed in wherever a test must control it. */
export interface Clock {
  /** Milliseconds since 1970. */
  nowMs(): number;
  /** Milliseconds that never go back, from an arbitrary origin. */
  monotonicMs(): number;
}

/** Timers, passed in for the same reason. */
export interface Timers {
  /** Runs `work` once, `ms` from now. @returns a function that cancels it */
  after(ms: number, work: () => void): () => void;
}

export const systemClock: Clock = {
  nowMs: () => Date.now(),
  monotonicMs: () => performance.now(),
};

export const systemTimers: Timers = {
  after(ms, work) {
    const timer = setTimeout(work, ms);
    return () => clearTimeout(timer);
  },
};

/** Less is the time that the answer was on its way. */
const clockApartMinMs = 10_000;

/** By how much this machine's clock is ahead of the database's, which said `databaseMs` just now. */
export function clockAheadOf(databaseMs: number, nowMs: number): number {
  const aheadMs = nowMs - databaseMs;
  return Math.abs(aheadMs) < clockApartMinMs ? 0 : aheadMs;
}

/** Waits for `work`, but no longer than `ms`: then it resolves to undefined, and how `work` ends later is ignored. */
export async function within<Result>(ms: number, work: Promise<Result>): Promise<Result | undefined> {
  const { promise: late, resolve } = Promise.withResolvers<undefined>();
  const cancel = systemTimers.after(ms, () => resolve(undefined));
  try {
    return await Promise.race([work, late]);
  } finally {
    cancel();
  }
}

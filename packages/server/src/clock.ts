/** Time, passed in wherever a test must control it. */
export interface Clock {
  /** Milliseconds since 1970. */
  nowMs(): number;
  /** Milliseconds that never go back, from an arbitrary origin: the same one in every thread of the process. */
  monotonicMs(): number;
}

/** Timers, passed in for the same reason. */
export interface Timers {
  /** Runs `work` once, `ms` from now. @returns a function that cancels it */
  after(ms: number, work: () => void): () => void;
}

/**
 * performance.now() counts from its thread's start, the machine's own clock from one origin for all. Both are read as
 * close together as possible: a thread interrupted between the two would be late for its whole life.
 */
function threadStartMs(): number {
  let [startMs, closestMs] = [0, Number.POSITIVE_INFINITY];
  for (let tries = 0; tries < 20; tries += 1) {
    const beforeMs = performance.now();
    const machineMs = Number(process.hrtime.bigint()) / 1e6;
    const afterMs = performance.now();
    if (afterMs - beforeMs < closestMs) {
      closestMs = afterMs - beforeMs;
      startMs = machineMs - (beforeMs + afterMs) / 2;
    }
  }
  return startMs;
}

const startMs = threadStartMs();

export const systemClock: Clock = {
  nowMs: () => Date.now(),
  monotonicMs: () => startMs + performance.now(),
};

export const systemTimers: Timers = {
  after(ms, work) {
    const timer = setTimeout(work, ms);
    return () => clearTimeout(timer);
  },
};

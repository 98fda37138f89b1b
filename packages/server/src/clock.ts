/** Time, passed in wherever a test must rule it. */
export interface Clock {
  /** Milliseconds since 1970. */
  nowMs(): number;
  /** Milliseconds that never step back, from an arbitrary origin: the same one in every thread of the process. */
  monotonicMs(): number;
}

/** performance.now() counts from its thread's start, the machine's own clock from one moment for all. */
const threadStartMs = Number(process.hrtime.bigint()) / 1e6 - performance.now();

export const systemClock: Clock = {
  nowMs: () => Date.now(),
  monotonicMs: () => threadStartMs + performance.now(),
};

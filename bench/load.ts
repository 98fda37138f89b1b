/** The calls of one round of a row. */
export interface Load {
  readonly durationMs: number;
  /** Calls arrive at this rate, whatever became of those before. Otherwise each caller calls as soon as it can. */
  readonly ratePerS?: number | undefined;
  /** No more calls than this. */
  readonly callsMax?: number | undefined;
}

/** When calls came at a rate: monotonic milliseconds of the machine, the same in all processes. */
export interface Schedule {
  readonly scheduledMs: Float64Array;
  /** Median delay before a call left: this process's own share of a latency. */
  readonly lateMs: number;
}

/**
 * Calls for the time of the load, and until all calls have ended.
 *
 * @param call gets the number of the caller, from 0 to `callers` - 1, and of the call
 */
export async function drive(
  load: Load,
  callers: number,
  call: (caller: number, index: number) => Promise<void>,
): Promise<Schedule> {
  const { durationMs, ratePerS, callsMax = Number.POSITIVE_INFINITY } = load;
  const startMs = monotonicMs();
  if (ratePerS !== undefined) return await callWhenDue(poisson(ratePerS, durationMs, startMs), callers, call);
  let called = 0;
  const run = async (_: unknown, caller: number) => {
    // The first, however long the machine had other work since.
    while ((called === 0 || monotonicMs() - startMs < durationMs) && called < callsMax) {
      called += 1;
      await call(caller, called - 1);
    }
  };
  await Promise.all(Array.from({ length: callers }, run));
  return { scheduledMs: new Float64Array(0), lateMs: 0 };
}

async function callWhenDue(
  scheduledMs: Float64Array,
  callers: number,
  call: (caller: number, index: number) => Promise<void>,
): Promise<Schedule> {
  const late = new Float64Array(scheduledMs.length);
  const calls: Promise<void>[] = [];
  while (calls.length < scheduledMs.length) {
    const nowMs = monotonicMs();
    for (const dueMs of scheduledMs.subarray(calls.length)) {
      if (dueMs > nowMs) break;
      late[calls.length] = nowMs - dueMs;
      calls.push(call(calls.length % callers, calls.length));
    }
    // Up to 2 ms late, which counts against the service; busy waiting would take a core from it.
    const nextMs = scheduledMs[calls.length];
    if (nextMs !== undefined) await new Promise((resolve) => setTimeout(resolve, nextMs - nowMs));
  }
  await Promise.all(calls);
  return { scheduledMs, lateMs: late.sort()[late.length >> 1] ?? 0 };
}

/** Arrivals that know nothing of each other: a Poisson process. */
function poisson(ratePerS: number, durationMs: number, startMs: number): Float64Array {
  const times: number[] = [];
  for (let afterMs = 0; ; ) {
    afterMs -= (Math.log(1 - Math.random()) / ratePerS) * 1_000;
    if (afterMs >= durationMs) return Float64Array.from(times);
    times.push(startMs + afterMs);
  }
}

/** The machine's monotonic clock: the same for all processes, as `performance.now()` is not. */
export function monotonicMs(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}

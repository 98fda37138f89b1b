import { poisson } from "./poisson.ts";

/** The calls of one round of a row. */
export interface Load {
  readonly durationMs: number;
  /** Calls arrive at this rate, whatever became of those before. Otherwise each caller calls as soon as it can. */
  readonly ratePerS?: number | undefined;
}

/**
 * Calls for the time of the load, and until all calls have ended.
 *
 * @param call gets the number of the caller, from 0 to `callers` - 1
 */
export async function drive(load: Load, callers: number, call: (caller: number) => Promise<void>): Promise<void> {
  const { durationMs, ratePerS } = load;
  const startedMs = performance.now();
  if (ratePerS === undefined) {
    const run = async (_: unknown, caller: number) => {
      while (performance.now() - startedMs < durationMs) await call(caller);
    };
    await Promise.all(Array.from({ length: callers }, run));
    return;
  }
  const calls: Promise<void>[] = [];
  for (const afterMs of poisson(ratePerS, durationMs)) {
    const waitMs = startedMs + afterMs - performance.now();
    if (waitMs > 0) await new Promise((resolve) => setTimeout(resolve, waitMs));
    calls.push(call(calls.length % callers));
  }
  await Promise.all(calls);
}

import type { Cleanup } from "./command.ts";
import type { BenchEnvironment } from "./environment.ts";
import type { Load } from "./load.ts";
import { openCalledService } from "./service-rows.ts";

export interface BurstPlan {
  readonly completions: number;
  /** Duration of the load before the burst: it shows the rate at which nothing piles up. */
  readonly steadyMs: number;
  /** Before the burst, calls of each load. */
  readonly callsMax?: number | undefined;
}

export interface BurstResult {
  readonly completions: number;
  /** A second: what was delivered of a steady load, by the same callers, one batch after the other. */
  readonly steadyPerS: number;
  readonly acceptedPerS: number;
  /** Delivered while the burst still came. */
  readonly meanwhilePerS: number;
  /** From the first call to the last record. */
  readonly deliveredPerS: number;
}

const batch = 100;
const callers = 8;

/** Reports completions in batches of 100, each with a callback URL of its own, as fast as they are taken in. */
export async function measureBurst(around: BenchEnvironment, cleanup: Cleanup, plan: BurstPlan): Promise<BurstResult> {
  const { caller, process } = await openCalledService(around, cleanup, "burst");
  const standing = async () => (await process.ask("standing", undefined)).attempts;
  const run = async (load: Load, callbackBase?: string) => {
    const before = await standing();
    const startMs = performance.now();
    const round = { what: "completions", batch, callers, ...load, ...(callbackBase && { callbackBase }) } as const;
    const { count } = await caller.ask("round", round);
    const acceptedMs = performance.now() - startMs;
    const meanwhile = (await standing()) - before;
    await process.ask("drained", { attempts: before + count });
    return { count, acceptedMs, meanwhile, deliveredMs: performance.now() - startMs };
  };
  // Warms up.
  const { steadyMs, callsMax } = plan;
  await run({ durationMs: steadyMs / 2, callsMax });
  const steady = await run({ durationMs: steadyMs, callsMax });
  const all = { durationMs: Number.POSITIVE_INFINITY, callsMax: Math.floor(plan.completions / batch) };
  const burst = await run(all, around.target.url);
  const perS = (rows: number, ms: number) => (rows / ms) * 1_000;
  return {
    completions: burst.count,
    steadyPerS: perS(steady.count, steady.deliveredMs),
    acceptedPerS: perS(burst.count, burst.acceptedMs),
    meanwhilePerS: perS(burst.meanwhile, burst.acceptedMs),
    deliveredPerS: perS(burst.count, burst.deliveredMs),
  };
}

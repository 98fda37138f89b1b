import type { Cleanup } from "./command.ts";
import type { BenchEnvironment } from "./environment.ts";
import type { Load } from "./load.ts";
import { openCalledService } from "./service-rows.ts";

export interface BurstPlan {
  readonly completions: number;
  /** Duration of the load before the burst: it shows the rate at which nothing piles up. */
  readonly steadyMs: number;
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
  const round = async (load: Load, callbackBase?: string) => {
    const plan = { what: "completions", batch, callers, ...load, ...(callbackBase && { callbackBase }) } as const;
    return (await caller.ask("round", plan)).count;
  };
  const warmUp = await round({ durationMs: plan.steadyMs / 2 });
  await process.ask("drained", { attempts: warmUp });

  const steadyStartMs = performance.now();
  const steady = await round({ durationMs: plan.steadyMs });
  await process.ask("drained", { attempts: warmUp + steady });
  const steadyMs = performance.now() - steadyStartMs;

  const startMs = performance.now();
  const callsMax = Math.floor(plan.completions / batch);
  const count = await round({ durationMs: Number.POSITIVE_INFINITY, callsMax }, around.target.url);
  const acceptedMs = performance.now() - startMs;
  const meanwhile = (await process.ask("standing", undefined)).attempts - warmUp - steady;
  await process.ask("drained", { attempts: warmUp + steady + count });
  const deliveredMs = performance.now() - startMs;
  const perS = (rows: number, ms: number) => (rows / ms) * 1_000;
  return {
    completions: count,
    steadyPerS: perS(steady, steadyMs),
    acceptedPerS: perS(count, acceptedMs),
    meanwhilePerS: perS(meanwhile, acceptedMs),
    deliveredPerS: perS(count, deliveredMs),
  };
}

import type { BenchEnvironment } from "./environment.ts";
import type { CalledService } from "./service-rows.ts";
import { median, percentile } from "./statistics.ts";

export interface LatencyResult extends LatencyPlan {
  /** Medians over the windows, of the time from the scheduled arrival to the callback received. */
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly p99OfWindowsMs: readonly number[];
  /** Median delay of the caller itself: part of the above. */
  readonly callerLateMs: number;
}

export interface LatencyPlan {
  readonly ratePerS: number;
  readonly windows: number;
  readonly windowMs: number;
}

const warmUpMs = 1_000;
/** The last callback that does not come by then never will. */
const lastComesWithinMs = 60_000;
const askAgainMs = 20;

/** Open loop at a fixed rate: a call that finds the service busy waits, and its wait counts. */
export async function measureLatency(
  { caller }: Pick<CalledService, "caller">,
  { receiver, target }: BenchEnvironment,
  plan: LatencyPlan,
): Promise<LatencyResult> {
  const durationMs = Math.min(warmUpMs, plan.windowMs) + plan.windows * plan.windowMs;
  await receiver.ask("noteArrivals", Math.ceil(plan.ratePerS * (durationMs / 1_000) * 1.5) + 1_000);
  const { scheduledMs, lateMs } = await caller.ask("round", {
    ...{ what: "completions", batch: 1, callers: 1, callbackBase: target.url },
    ...{ ratePerS: plan.ratePerS, durationMs },
  });
  const deadlineMs = performance.now() + lastComesWithinMs;
  while ((await receiver.ask("missing", scheduledMs.length)) > 0 && performance.now() < deadlineMs) {
    await new Promise((resolve) => setTimeout(resolve, askAgainMs));
  }
  const arrivals = await receiver.ask("arrivals", undefined);
  const startMs = (scheduledMs[0] ?? 0) + Math.min(warmUpMs, plan.windowMs);
  const latencies = Array.from({ length: plan.windows }, (): number[] => []);
  for (const [index, dueMs] of scheduledMs.entries()) {
    const cameMs = arrivals[index] ?? 0;
    if (cameMs === 0) throw new Error(`The callback of arrival ${index} did not come.`);
    if (dueMs >= startMs) latencies[Math.floor((dueMs - startMs) / plan.windowMs)]?.push(cameMs - dueMs);
  }
  const p99OfWindowsMs = latencies.map((window) => percentile(window, 99));
  const p50Ms = median(latencies.map((window) => percentile(window, 50)));
  return { ...plan, p50Ms, p99Ms: median(p99OfWindowsMs), p99OfWindowsMs, callerLateMs: lateMs };
}

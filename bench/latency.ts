import type { BenchEnvironment } from "./environment.ts";
import type { Load } from "./load.ts";
import type { CallerOutcome, CallerRound } from "./processes/caller.ts";
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

/** Open loop at a fixed rate: a call that finds the service busy waits, and its wait counts. */
export async function measureLatency(
  service: CalledService,
  around: BenchEnvironment,
  plan: LatencyPlan,
): Promise<LatencyResult> {
  const leadMs = Math.min(warmUpMs, plan.windowMs);
  const load = { ratePerS: plan.ratePerS, durationMs: leadMs + plan.windows * plan.windowMs };
  const callsMax = Math.ceil(load.ratePerS * (load.durationMs / 1_000) * 1.5) + 1_000;
  const { scheduledMs, lateMs, arrivals } = await callAndReceive(service, around, { callers: 1, ...load }, callsMax);
  const startMs = (scheduledMs[0] ?? 0) + leadMs;
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

/** Reports one by one, each with a callback URL of its own. @returns when each came back too, by its number */
export async function callAndReceive(
  { caller, process }: CalledService,
  { receiver, target }: BenchEnvironment,
  load: Pick<CallerRound, "callers" | keyof Load>,
  callsMax: number,
): Promise<CallerOutcome & { readonly arrivals: Float64Array }> {
  const before = await process.ask("standing", undefined);
  await receiver.ask("noteArrivals", callsMax);
  const round = { what: "completions", batch: 1, callbackBase: target.url } as const;
  const called = await caller.ask("round", { ...round, ...load });
  await process.ask("drained", { attempts: before.attempts + called.count });
  return { ...called, arrivals: await receiver.ask("arrivals", undefined) };
}

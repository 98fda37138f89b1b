import type { Cleanup } from "./environment.ts";
import { startProcess } from "./processes/channel.ts";
import type { saleCallerMethods } from "./processes/sale-caller.ts";
import type { CalledService } from "./service-rows.ts";
import { median, percentile } from "./statistics.ts";

/** From the scheduled moment of a POST /v1/commands, a Sale with an immediate acquirer, to its whole answer. */
export interface SaleLatencyResult {
  readonly ratePerS: number;
  readonly windows: number;
  readonly windowMs: number;
  /** Medians over the windows. */
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly p50OfWindowsMs: readonly number[];
  readonly p99OfWindowsMs: readonly number[];
  /** Median delay of the caller itself: part of the above. */
  readonly callerLateMs: number;
}

const warmUpMs = 1_000;
const terminals = 256;

/** Open loop at a fixed rate; what became of the callbacks is waited for, and not counted. */
export async function measureSaleLatency(
  { process, at }: CalledService,
  cleanup: Cleanup,
  plan: { readonly ratePerS: number; readonly windows: number; readonly windowMs: number },
): Promise<SaleLatencyResult> {
  const caller = startProcess<ReturnType<typeof saleCallerMethods>>(
    new URL("./processes/sale-caller.ts", import.meta.url),
  );
  cleanup.add(() => caller.stop());
  await caller.ask("aim", at);
  const { attempts } = await process.ask("standing", undefined);
  const afterMs = Math.min(warmUpMs, plan.windowMs);
  const durationMs = afterMs + plan.windows * plan.windowMs;
  const loop = { ratePerS: plan.ratePerS, durationMs, terminals };
  const { scheduledMs, latencyMs, lateMs } = await caller.ask("sellOpenLoop", loop);
  await process.ask("drained", { attempts: attempts + scheduledMs.length });
  await caller.stop();
  const windows = Array.from({ length: plan.windows }, (): number[] => []);
  for (const [index, dueMs] of scheduledMs.entries()) {
    if (dueMs >= afterMs) windows[Math.floor((dueMs - afterMs) / plan.windowMs)]?.push(latencyMs[index] ?? 0);
  }
  const p50OfWindowsMs = windows.map((window) => percentile(window, 50));
  const p99OfWindowsMs = windows.map((window) => percentile(window, 99));
  return {
    ...plan,
    p50Ms: median(p50OfWindowsMs),
    p99Ms: median(p99OfWindowsMs),
    p50OfWindowsMs,
    p99OfWindowsMs,
    callerLateMs: lateMs,
  };
}

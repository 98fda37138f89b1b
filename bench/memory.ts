import { producers } from "./contender.ts";
import type { BenchEnvironment, Cleanup } from "./environment.ts";
import type { MemorySample } from "./memory-watch.ts";
import { closeService, openCalledService } from "./service-rows.ts";

export interface MemoryResult {
  readonly seconds: number;
  readonly perS: number;
  /** The moment of the most, of the service's process alone. */
  readonly most: MemorySample;
}

/** The memory of a new service at the load of the row "service": as many callers, one completion per request. */
export async function measureMemory(
  around: BenchEnvironment,
  cleanup: Cleanup,
  plan: { readonly durationMs: number },
): Promise<MemoryResult> {
  const service = await openCalledService(around, cleanup, "memory");
  const round = { what: "completions", batch: 1, callers: producers, durationMs: plan.durationMs } as const;
  const count = await service.caller.ask("round", round);
  await service.process.ask("drained", { attempts: count });
  const { memory } = await service.process.ask("standing", undefined);
  await service.caller.stop();
  await closeService(service);
  return { seconds: plan.durationMs / 1_000, perS: (count / plan.durationMs) * 1_000, most: memory };
}

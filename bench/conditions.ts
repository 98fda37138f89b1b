import { type BacklogResult, measureBacklog } from "./backlog.ts";
import { type BurstResult, measureBurst } from "./burst.ts";
import { type BenchEnvironment, Cleanup } from "./environment.ts";
import { type IsolationResult, measureIsolation } from "./isolation.ts";
import { type MemoryResult, measureMemory } from "./memory.ts";
import { measureOpenTransaction, type OpenTransactionResult } from "./open-transaction.ts";
import type { BenchOptions, PartName } from "./options.ts";
import { measureRecovery, type RecoveryResult } from "./recovery.ts";
import { measureRestart, type RestartResult } from "./restart.ts";
import { measureScale, type ScaleStep } from "./scale.ts";
import { measureSession, type SessionResult } from "./session.ts";
import { measureTakeover, type TakeoverResult } from "./takeover.ts";

/** The service under adverse conditions; undefined if not measured. */
export interface ConditionResults {
  readonly memory: MemoryResult | undefined;
  readonly burst: BurstResult | undefined;
  readonly isolation: IsolationResult | undefined;
  readonly backlog: BacklogResult | undefined;
  readonly openTransaction: OpenTransactionResult | undefined;
  readonly recovery: RecoveryResult | undefined;
  readonly restart: readonly RestartResult[] | undefined;
  readonly takeover: TakeoverResult | undefined;
  readonly session: SessionResult | undefined;
  readonly scale: readonly ScaleStep[] | undefined;
}

/**
 * One after the other, each with services and databases of its own that are gone when the next one begins.
 *
 * @param servicePerS what the row "service" came to, if it was measured: isolation runs at half of it
 */
export async function measureConditions(
  options: BenchOptions,
  around: BenchEnvironment,
  cleanup: Cleanup,
  servicePerS: number | undefined,
  note: (line: string) => void,
): Promise<ConditionResults> {
  const measure = async <Result>(part: PartName, how: (own: Cleanup) => Promise<Result>) => {
    if (!options.parts.has(part)) return undefined;
    note(part);
    const own = new Cleanup();
    cleanup.add(() => own.run());
    const result = await how(own);
    await own.run();
    return result;
  };
  return {
    memory: await measure("memory", (own) => measureMemory(around, own, { durationMs: options.memoryMs })),
    burst: await measure("burst", (own) => measureBurst(around, own, options.burst)),
    isolation: await measure("isolation", (own) =>
      measureIsolation(around, own, { ...options.isolation, servicePerS }, note),
    ),
    backlog: await measure("backlog", (own) => measureBacklog(around, own, options.backlog, note)),
    openTransaction: await measure("open-transaction", (own) =>
      measureOpenTransaction(around, own, options.openTransaction, note),
    ),
    recovery: await measure("recovery", (own) => measureRecovery(around, own, options.recovery, note)),
    restart: await measure("restart", (own) => measureRestart(around, own, options.restart, note)),
    takeover: await measure("takeover", (own) => measureTakeover(around, own, options.takeover)),
    session: await measure("session", (own) => measureSession(around, own, options.session)),
    scale: await measure("scale", (own) => measureScale(around, own, options.scale, note)),
  };
}

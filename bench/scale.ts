import { producers } from "./contender.ts";
import type { BenchEnvironment, Cleanup } from "./environment.ts";
import { treeCpuMs } from "./processor.ts";
import { type BenchService, closeService, openService } from "./service-rows.ts";
import { median, type Spread, spread } from "./statistics.ts";

export interface ScalePlan {
  readonly instances: readonly number[];
  readonly rounds: number;
  readonly roundMs: number;
}

export interface ScaleStep {
  readonly instances: number;
  /** Delivered and recorded, all instances together. */
  readonly perS: Spread;
  /** To a single instance's, round by round. */
  readonly ofOne: Spread;
  /** Processor time for each delivery, in microseconds; PostgreSQL's is undefined where there is no /proc. */
  readonly ownUs: number;
  readonly postgresUs: number | undefined;
  readonly receiverUs: number;
}

interface Sample {
  readonly perS: number;
  readonly ownUs: number;
  readonly postgresUs: number | undefined;
  readonly receiverUs: number;
}

const pollMs = 5;

/**
 * The same load, shared by more and more instances on one PostgreSQL. Each measurement has a database and processes of
 * its own, warmed up: instances that stood by idle would take part.
 */
export async function measureScale(
  around: BenchEnvironment,
  cleanup: Cleanup,
  plan: ScalePlan,
  note: (line: string) => void,
): Promise<readonly ScaleStep[]> {
  const samples = new Map<number, Sample[]>(plan.instances.map((instances) => [instances, []]));
  for (let round = 1; round <= plan.rounds; round += 1) {
    for (const [instances, of] of samples) {
      note(`scale: round ${round} of ${plan.rounds}, ${instances} ${instances === 1 ? "instance" : "instances"}`);
      of.push(await measureOnce(`scale-${instances}-${round}`, instances, around, cleanup, plan.roundMs));
    }
  }
  const one = samples.get(1) ?? [];
  return [...samples].map(([instances, of]) => ({
    instances,
    perS: spread(of.map(({ perS }) => perS)),
    ofOne: spread(of.map(({ perS }, round) => perS / (one[round]?.perS ?? Number.NaN))),
    ownUs: median(of.map(({ ownUs }) => ownUs)),
    postgresUs:
      of[0]?.postgresUs === undefined ? undefined : median(of.map(({ postgresUs = Number.NaN }) => postgresUs)),
    receiverUs: median(of.map(({ receiverUs }) => receiverUs)),
  }));
}

async function measureOnce(
  name: string,
  instances: number,
  around: BenchEnvironment,
  cleanup: Cleanup,
  roundMs: number,
): Promise<Sample> {
  const first = await openService(around, cleanup, name);
  const { databaseUrl, at: joins } = first;
  const others = Array.from({ length: instances - 1 }, () =>
    openService(around, cleanup, name, { databaseUrl, joins, register: [] }),
  );
  const services = [first, ...(await Promise.all(others))];
  await deliver(services, roundMs);
  const before = await standing(services, around);
  const { count, elapsedMs } = await deliver(services, roundMs);
  const after = await standing(services, around);
  await Promise.all(services.map(closeService));
  const each = (ms: number) => (ms * 1_000) / count;
  return {
    perS: (count / elapsedMs) * 1_000,
    ownUs: each(after.ownMs - before.ownMs),
    postgresUs:
      before.postgresMs === undefined || after.postgresMs === undefined
        ? undefined
        : each(after.postgresMs - before.postgresMs),
    receiverUs: each(after.receiverMs - before.receiverMs),
  };
}

/** Another instance may send deliveries that this one leaves due: it ends when all together have sent all. */
async function deliver(services: readonly BenchService[], durationMs: number) {
  const before = await accepted(services);
  const startedMs = performance.now();
  const callers = Math.ceil(producers / services.length);
  const counts = await Promise.all(services.map(({ process }) => process.ask("produce", { durationMs, callers })));
  const count = counts.reduce((sum, one) => sum + one, 0);
  while ((await accepted(services)) < before + count) await new Promise((resolve) => setTimeout(resolve, pollMs));
  await Promise.all(services.map(({ process }) => process.ask("drained", { attempts: 0 })));
  return { count, elapsedMs: performance.now() - startedMs };
}

async function accepted(services: readonly BenchService[]): Promise<number> {
  const standings = await Promise.all(services.map(({ process }) => process.ask("standing", undefined)));
  return standings.reduce((sum, { attempts }) => sum + attempts, 0);
}

async function standing(services: readonly BenchService[], { receiver, postgres }: BenchEnvironment) {
  const standings = await Promise.all(services.map(({ process }) => process.ask("standing", undefined)));
  return {
    ownMs: standings.reduce((sum, { cpuMs }) => sum + cpuMs, 0),
    postgresMs: await treeCpuMs(postgres.pid),
    receiverMs: (await receiver.ask("received", undefined)).cpuMs,
  };
}

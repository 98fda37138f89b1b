import type { Cleanup } from "./command.ts";
import { producers, type RoundOutcome } from "./contender.ts";
import type { BenchEnvironment } from "./environment.ts";
import type { Load } from "./load.ts";
import type { RowName } from "./options.ts";
import type { CallerRound, callerMethods } from "./processes/caller.ts";
import { type Process, startProcess } from "./processes/channel.ts";
import type { ServiceAt, ServiceStart, serviceMethods } from "./processes/service.ts";
import type { Row } from "./rows.ts";

/** With their default settings, 32 POSTs in flight each: together as many as an instance has slots. */
export const partners = 16;
/** Node's options, as `npm run paybell` has them. */
export const serviceFlags = ["--max-old-space-size=1024", "--heap-growing-percent=100", "--v8-pool-size=2"];
/** Callers that hand over 100 at once: as many completions under way as a quarter of what one group commit queues. */
const batchCallers = 8;

/** Paybell in a process of its own. */
export interface BenchService {
  readonly process: Process<ReturnType<typeof serviceMethods>>;
  readonly at: ServiceAt;
  readonly databaseUrl: string;
}

export interface ServicePlan extends Partial<ServiceStart> {
  /** The program: of this checkout, unless it is named. */
  readonly entry?: URL;
}

/** On a database of its own. Unless the plan says otherwise, its partners all have the one receiver. */
export async function openService(
  around: BenchEnvironment,
  cleanup: Cleanup,
  name: string,
  plan: ServicePlan = {},
): Promise<BenchService> {
  const { entry = new URL("./processes/service.ts", import.meta.url), ...given } = plan;
  const databaseUrl = given.databaseUrl ?? (await around.newDatabase(name));
  const process: BenchService["process"] = startProcess(entry, serviceFlags);
  cleanup.add(() => process.stop());
  const register = given.register ?? Array.from({ length: partners }, () => ({ callBackUrl: around.target.url }));
  const at = await process.ask("start", { ca: around.target.ca, ...given, databaseUrl, register });
  cleanup.add(() => process.ask("stop", undefined));
  return { process, at, databaseUrl };
}

export function engineRow({ process }: BenchService): Row {
  return {
    name: "engine",
    label: "engine: completions in process",
    setting: `${producers} callers, ${partners} partners`,
    round: (load) => process.ask("round", load),
  };
}

/** A service and its callers over HTTP. */
export interface CalledService extends BenchService {
  readonly caller: Process<ReturnType<typeof callerMethods>>;
}

export async function openCalledService(
  around: BenchEnvironment,
  cleanup: Cleanup,
  name = "service",
  plan: ServicePlan = {},
): Promise<CalledService> {
  const service = await openService(around, cleanup, name, plan);
  const caller: CalledService["caller"] = startProcess(new URL("./processes/caller.ts", import.meta.url));
  cleanup.add(() => caller.stop());
  await caller.ask("aim", service.at);
  return { ...service, caller };
}

const calls = {
  service: { label: "service: POST /operator/v1/completions", what: "completions", batch: 1, callers: producers },
  batches: { label: "service: batches of 100", what: "completions", batch: 100, callers: batchCallers },
  commands: { label: "service: POST /v1/commands, Sale", what: "commands", batch: 1, callers: producers },
} as const satisfies Readonly<Partial<Record<RowName, Omit<CallerRound, keyof Load> & { readonly label: string }>>>;

export type CalledName = keyof typeof calls;

/** One of the rows that call the service over HTTP. */
export function calledRow(name: CalledName, { process, caller }: CalledService): Row {
  const { label, ...round } = calls[name];
  return {
    name,
    label,
    setting: `${round.callers} callers, ${partners} partners`,
    async round(load): Promise<RoundOutcome> {
      const startedMs = performance.now();
      const before = await process.ask("standing", undefined);
      const { count } = await caller.ask("round", { ...round, ...load });
      await process.ask("drained", { attempts: before.attempts + count });
      const elapsedMs = performance.now() - startedMs;
      const after = await process.ask("standing", undefined);
      return { count, elapsedMs, cpuMs: after.cpuMs - before.cpuMs };
    },
  };
}

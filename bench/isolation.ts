import { BacklogRows } from "./backlog-rows.ts";
import { producers } from "./contender.ts";
import type { BenchEnvironment, Cleanup } from "./environment.ts";
import { type LatencyPlan, type LatencyResult, measureLatency } from "./latency.ts";
import { startProcess } from "./processes/channel.ts";
import type { partnerSitesMethods, SiteBehaviour } from "./processes/partner-sites.ts";
import { type CalledService, closeService, openCalledService, partners } from "./service-rows.ts";
import { median } from "./statistics.ts";

export interface IsolationPlan extends Omit<LatencyPlan, "ratePerS"> {
  /** Pending notifications of the one partner that answers late, or never. */
  readonly pending: number;
  /** The service's maximum rate, if known: half of it arrives. */
  readonly servicePerS: number | undefined;
}

export interface IsolationResult {
  readonly ratePerS: number;
  readonly pending: number;
  /** The other partners' p99, medians over all windows: while that partner answers at once, late, and never. */
  readonly p99Ms: Readonly<Record<SiteBehaviour, number>>;
  readonly p99OfWindowsMs: Readonly<Record<SiteBehaviour, readonly number[]>>;
  /** The p99, divided by the p99 beside a partner that answers at once. */
  readonly ratio: Readonly<Record<"late" | "never", number>>;
  /** The upper limit of the p99: 1.5 times the value without, or 10 ms more. */
  readonly allowedMs: number;
}

/** Arrivals of the one partner beside the others': as many as each of them has. */
const shareOfOne = 1 / partners;
/** Until its last attempts have ended, the next part is not measured. */
const attemptEndsWithinMs = 20_000;
const closedLoopMs = 1_500;

/**
 * Measures the effect on others of one partner that answers after ten seconds, or never, with a backlog, while its new
 * notifications keep arriving. The measurements without it come before and after, so that a slower machine is noticed.
 */
export async function measureIsolation(
  around: BenchEnvironment,
  cleanup: Cleanup,
  plan: IsolationPlan,
  note: (line: string) => void,
): Promise<IsolationResult> {
  const sites = startProcess<ReturnType<typeof partnerSitesMethods>>(
    new URL("./processes/partner-sites.ts", import.meta.url),
  );
  cleanup.add(() => sites.stop());
  const url = await sites.ask("serve", around.certificate);
  const service = await openCalledService(around, cleanup, "isolation", {
    register: [
      ...Array.from({ length: partners }, () => ({ callBackUrl: around.target.url })),
      { callBackUrl: `${url}/0` },
    ],
    mayFail: true,
  });
  const one = service.at.partners.at(-1)?.id ?? "";
  // Arrivals go to the others alone; the one has its own.
  await service.caller.ask("aim", { ...service.at, partners: service.at.partners.slice(0, partners) });
  const rows = await BacklogRows.open(service.databaseUrl, service.at.masterKey);
  cleanup.add(() => rows.close());
  await service.process.ask("sending", { to: [one], on: false });
  await service.process.ask("reportEach", [one]);
  await rows.takeAsTemplates();
  await rows.remove(one);
  await service.process.ask("sending", { to: [one], on: true });

  const ratePerS = Math.round((plan.servicePerS ?? (await mostPerS(service))) / 2);
  const windows: Record<SiteBehaviour, number[]> = { "at-once": [], late: [], never: [] };
  const run = async (manner: SiteBehaviour) => {
    note(`isolation: one partner answers ${manner.replace("-", " ")}`);
    const result = await measureBeside(service, around, one, { ...plan, ratePerS });
    windows[manner].push(...result.p99OfWindowsMs);
  };
  await run("at-once");
  for (const manner of ["late", "never"] as const) {
    await sites.ask("behave", manner);
    await rows.add(plan.pending);
    await run(manner);
    await rows.remove(one);
    await sites.ask("behave", "at-once");
    await settle(service);
  }
  await run("at-once");
  await service.caller.stop();
  await closeService(service);
  await sites.stop();

  const p99Ms = { "at-once": median(windows["at-once"]), late: median(windows.late), never: median(windows.never) };
  return {
    ratePerS,
    pending: plan.pending,
    p99Ms,
    p99OfWindowsMs: windows,
    ratio: { late: p99Ms.late / p99Ms["at-once"], never: p99Ms.never / p99Ms["at-once"] },
    allowedMs: Math.max(p99Ms["at-once"] * 1.5, p99Ms["at-once"] + 10),
  };
}

async function measureBeside(
  service: CalledService,
  around: BenchEnvironment,
  partnerId: string,
  plan: LatencyPlan,
): Promise<LatencyResult> {
  const trickle = {
    partnerId,
    ratePerS: Math.max(1, plan.ratePerS * shareOfOne),
    durationMs: plan.windows * plan.windowMs,
  };
  const [result] = await Promise.all([measureLatency(service, around, plan), service.caller.ask("trickle", trickle)]);
  return result;
}

/** Single completions over HTTP, after a warm-up. */
async function mostPerS({ caller, process }: CalledService): Promise<number> {
  const round = { what: "completions", batch: 1, callers: producers, durationMs: closedLoopMs } as const;
  const warmUp = await caller.ask("round", round);
  await process.ask("drained", { attempts: warmUp });
  const count = await caller.ask("round", round);
  await process.ask("drained", { attempts: warmUp + count });
  return (count / closedLoopMs) * 1_000;
}

/** Resolves when what that partner let hang is over. */
async function settle({ process }: CalledService): Promise<void> {
  const deadlineMs = performance.now() + attemptEndsWithinMs;
  while ((await process.ask("standing", undefined)).inFlight > 0 && performance.now() < deadlineMs) {
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

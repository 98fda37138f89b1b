import type { Cleanup } from "./command.ts";
import type { BenchEnvironment } from "./environment.ts";
import { startProcess } from "./processes/channel.ts";
import type { partnerSitesMethods } from "./processes/partner-sites.ts";
import { openService, partners } from "./service-rows.ts";

export interface RecoveryPlan {
  /** Duration for which nobody listens while completions come. */
  readonly downMs: number;
  /** Together. */
  readonly completionsPerS: number;
}

export interface RecoveryResult extends RecoveryPlan {
  readonly completions: number;
  /** POSTs that failed while nobody listened: the breaker keeps them few. */
  readonly failed: number;
  /** From the moment they listen again to the first POST, at the partner that waits longest. */
  readonly firstMs: number;
  /** From that moment until nothing is pending. */
  readonly drainedMs: number;
  /** At one partner: at once, and within a second. */
  readonly mostAtOnce: number;
  readonly mostInASecond: number;
  readonly maxInFlight: number;
  /** At one of the partners that are limited. */
  readonly mostInASecondLimited: number;
  readonly maxPerSecond: number;
  /** Partners at which others began before the first POST was answered: 0 when a probe goes ahead everywhere. */
  readonly withoutProbe: number;
  readonly lost: number;
  readonly duplicates: number;
}

/** The default of a partner. */
const maxInFlight = 32;
/** The limit of half of the partners; the others have none. */
const maxPerSecond = 100;
const waveMs = 100;

/** All receivers go down, completions keep coming, and then all come back in the same moment. */
export async function measureRecovery(
  around: BenchEnvironment,
  cleanup: Cleanup,
  plan: RecoveryPlan,
  note: (line: string) => void,
): Promise<RecoveryResult> {
  const program = new URL("./processes/partner-sites.ts", import.meta.url);
  const sites = startProcess<ReturnType<typeof partnerSitesMethods>>(program);
  cleanup.add(() => sites.stop());
  const url = await sites.ask("serve", around.certificate);
  const register = Array.from({ length: partners }, (_, index) => ({
    callBackUrl: `${url}/${index}`,
    ...(isLimited(index) && { maxPerSecond }),
  }));
  const service = await openService(around, cleanup, "recovery", { register, mayFail: true });
  const untilNothingPending = () => service.process.ask("drained", { attempts: 0 });
  const to = service.at.partners.map(({ id }) => id);
  // Connections are established, and every code path ran once.
  await service.process.ask("reportEach", to);
  await untilNothingPending();

  note(`recovery: down for ${plan.downMs / 1_000} s`);
  await sites.ask("goDown", undefined);
  const completions = await reportFor(plan, (partnersOf) => service.process.ask("reportEach", partnersOf), to);
  const { failed } = await service.process.ask("standing", undefined);
  await sites.ask("forget", undefined);
  const backMs = await sites.ask("comeBack", undefined);
  note(`recovery: back, ${completions} to deliver`);
  const startedMs = performance.now();
  await untilNothingPending();
  const drainedMs = performance.now() - startedMs;
  const seen = await sites.ask("seen", partners);

  const unlimited = seen.filter((_, index) => !isLimited(index));
  const limited = seen.filter((_, index) => isLimited(index));
  const sum = (key: "accepted" | "requests") => seen.reduce((total, site) => total + site[key], 0);
  return {
    ...plan,
    completions,
    failed,
    firstMs: Math.max(...seen.map((site) => site.firstMs)) - backMs,
    drainedMs,
    mostAtOnce: Math.max(...seen.map((site) => site.mostAtOnce)),
    mostInASecond: Math.max(...unlimited.map((site) => site.mostInASecond)),
    maxInFlight,
    maxPerSecond,
    mostInASecondLimited: Math.max(...limited.map((site) => site.mostInASecond)),
    withoutProbe: seen.filter((site) => site.besideTheFirst > 0).length,
    lost: completions - sum("accepted"),
    duplicates: sum("requests") - sum("accepted"),
  };
}

function isLimited(index: number): boolean {
  return index % 2 === 1;
}

/** Each wave brings what the rate asks for by then, the first one at once. @returns how many there were */
async function reportFor(
  { downMs, completionsPerS }: RecoveryPlan,
  reportEach: (partnersOf: readonly string[]) => Promise<void>,
  to: readonly string[],
): Promise<number> {
  const startedMs = performance.now();
  let reported = 0;
  for (;;) {
    const elapsedMs = performance.now() - startedMs;
    if (elapsedMs >= downMs) return reported;
    const due = Math.ceil((elapsedMs / 1_000) * completionsPerS) - reported;
    const wave = Array.from({ length: due }, (_, index) => to[(reported + index) % to.length] ?? "");
    await reportEach(wave);
    reported += wave.length;
    await new Promise((resolve) => setTimeout(resolve, waveMs));
  }
}

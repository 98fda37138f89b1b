import { FakeHost } from "../packages/server/src/acquirer/iso8583/link/fake-host.fixture.ts";
import type { BenchEnvironment, Cleanup } from "./environment.ts";
import { type CalledService, openCalledService } from "./service-rows.ts";
import { median } from "./statistics.ts";

export interface SessionPlan {
  readonly rounds: number;
  readonly roundMs: number;
}

/** Sales over the one session that a host allows, which one of two instances has. */
export interface SessionResult {
  /** Sales a second through each of them, with many callers: medians of rounds by turns. */
  readonly holderPerS: number;
  readonly otherPerS: number;
  /** A Sale through each of them, with one caller. */
  readonly holderMs: number;
  readonly otherMs: number;
  /** From `kill -9` of the instance with the session to the first answer that the other has from the host. */
  readonly takeoverMs: number;
}

const callers = 64;
const signedOnWithinMs = 30_000;
const takenOverWithinMs = 60_000;
const lookEveryMs = 20;
const sellEveryMs = 50;

/** The host answers at once, in this process. */
export async function measureSession(
  around: BenchEnvironment,
  cleanup: Cleanup,
  { rounds, roundMs }: SessionPlan,
): Promise<SessionResult> {
  const host = await FakeHost.listen();
  host.keepsNothing = true;
  cleanup.add(() => host.close());
  const plan = { oneSessionAt: host.port };
  const holder = await openCalledService(around, cleanup, "session", plan);
  await waitFor(() => host.sockets.size === 1, signedOnWithinMs, "No instance has signed on.");
  const { databaseUrl, at: joins } = holder;
  const other = await openCalledService(around, cleanup, "session", { ...plan, databaseUrl, joins, register: [] });
  // The first one finds who has the session.
  await sellingFor(other, 1, roundMs);
  const perS = { holder: [] as number[], other: [] as number[] };
  const ms = { holder: [] as number[], other: [] as number[] };
  for (let round = 0; round < rounds; round += 1) {
    for (const [name, service] of [["holder", holder] as const, ["other", other] as const]) {
      perS[name].push((1_000 * (await sellingFor(service, callers, roundMs))) / roundMs);
      ms[name].push(roundMs / (await sellingFor(service, 1, roundMs)));
    }
  }
  if (host.sockets.size !== 1) throw new Error("Both instances have signed on.");
  return {
    holderPerS: median(perS.holder),
    otherPerS: median(perS.other),
    holderMs: median(ms.holder),
    otherMs: median(ms.other),
    takeoverMs: await takeover(holder, other),
  };
}

function sellingFor({ caller }: CalledService, atOnce: number, durationMs: number): Promise<number> {
  return caller.ask("round", { what: "commands", batch: 1, callers: atOnce, durationMs });
}

/** Sales leave at a fixed pace; those that the killed instance was asked for end as ERROR. */
async function takeover(killed: CalledService, survivor: CalledService): Promise<number> {
  process.kill(killed.process.pid, "SIGKILL");
  const killedMs = performance.now();
  let takeoverMs = Number.NaN;
  const sell = () =>
    survivor.caller.ask("round", { what: "commands", batch: 1, callers: 1, durationMs: 1 }).then(
      (taken) => {
        if (taken > 0 && Number.isNaN(takeoverMs)) takeoverMs = performance.now() - killedMs;
      },
      () => undefined,
    );
  const selling = setInterval(() => void sell(), sellEveryMs);
  await waitFor(() => !Number.isNaN(takeoverMs), takenOverWithinMs, "Nobody took the session over.");
  clearInterval(selling);
  return takeoverMs;
}

async function waitFor(holds: () => boolean, withinMs: number, otherwise: string): Promise<void> {
  const deadlineMs = performance.now() + withinMs;
  while (!holds()) {
    if (performance.now() > deadlineMs) throw new Error(otherwise);
    await new Promise((resolve) => setTimeout(resolve, lookEveryMs));
  }
}

import { Client } from "pg";
import type { BenchEnvironment, Cleanup } from "./environment.ts";
import { openService, partners } from "./service-rows.ts";

export interface TakeoverPlan {
  /** Duration for which both instances have work before one is killed. */
  readonly beforeMs: number;
}

export interface TakeoverResult {
  /** Partners whose shard the killed instance owned. */
  readonly orphaned: number;
  /** From the kill to the first notification, at the first and at the last of these partners; NaN where none is. */
  readonly firstMs: number;
  readonly lastMs: number;
}

const sharedWithinMs = 60_000;
const notifiedWithinMs = 60_000;
const lookEveryMs = 20;

/** One of two instances is killed, and each partner has a new completion at that moment. */
export async function measureTakeover(
  around: BenchEnvironment,
  cleanup: Cleanup,
  plan: TakeoverPlan,
): Promise<TakeoverResult> {
  const register = Array.from({ length: partners }, (_, index) => ({ callBackUrl: `${around.target.url}/${index}` }));
  const killed = await openService(around, cleanup, "takeover", { register });
  const { databaseUrl, at: joins } = killed;
  const database = new Client({ connectionString: databaseUrl });
  cleanup.add(() => database.end());
  await database.connect();
  const owners = async () =>
    (await database.query<{ shard: number; owner: string | null }>("SELECT shard, lease_id AS owner FROM shards")).rows;
  await waitFor(
    async () => (await owners()).every(({ owner }) => owner !== null),
    sharedWithinMs,
    "No shard is owned.",
  );
  const first = (await owners())[0]?.owner;
  const survivor = await openService(around, cleanup, "takeover", { databaseUrl, joins, register: [] });
  const isShared = async () => {
    const shards = await owners();
    return 2 * shards.filter(({ owner }) => owner === first).length === shards.length;
  };
  await waitFor(isShared, sharedWithinMs, "The instances do not share the shards.");
  await survivor.process.ask("produce", { durationMs: plan.beforeMs, callers: partners });
  await survivor.process.ask("drained", { attempts: 0 });
  const lost = new Set((await owners()).filter(({ owner }) => owner === first).map(({ shard }) => shard));
  const ids = survivor.at.partners.map(({ id }) => id);
  await around.receiver.ask("noteArrivals", partners);

  process.kill(killed.process.pid, "SIGKILL");
  const killedMs = nowMs();
  await survivor.process.ask("reportEach", ids);
  const areAllNotified = async () => (await around.receiver.ask("missing", partners)) === 0;
  await waitFor(areAllNotified, notifiedWithinMs, "Nobody took over.");
  const arrivals = await around.receiver.ask("arrivals", undefined);
  const orphaned = [...arrivals].filter((_, index) => lost.has(Number.parseInt(ids[index]?.slice(-2) ?? "", 16)));
  const afterMs = orphaned.map((cameMs) => cameMs - killedMs).sort((one, other) => one - other);
  return { orphaned: orphaned.length, firstMs: afterMs[0] ?? Number.NaN, lastMs: afterMs.at(-1) ?? Number.NaN };
}

async function waitFor(holds: () => Promise<boolean>, withinMs: number, otherwise: string): Promise<void> {
  const deadlineMs = performance.now() + withinMs;
  while (!(await holds())) {
    if (performance.now() > deadlineMs) throw new Error(otherwise);
    await new Promise((resolve) => setTimeout(resolve, lookEveryMs));
  }
}

/** The receiver's clock. */
function nowMs(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}

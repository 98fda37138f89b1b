import type { Health } from "../http/parts.ts";
import type { Lease } from "../instance.ts";
import type { Partitions } from "../store/partitions.ts";

const partitionsWarnBelow = 3;
const databaseTimeoutMs = 2_000;

export interface HealthParts {
  readonly ping: () => Promise<void>;
  readonly lease: Lease;
  readonly partitions: Pick<Partitions, "partitionsAhead">;
  /** What stands behind the commands, in words. */
  readonly acquirer: string;
}

/** Whether this instance can take work now, check by check: /readyz. */
export async function health(parts: HealthParts): Promise<Health> {
  const leaseMs = parts.lease.remainingMs();
  const [database, daysAhead] = await Promise.all([
    timed(parts.ping()),
    parts.partitions.partitionsAhead().catch(() => undefined),
  ]);
  const checks = {
    database: { ok: database === undefined, detail: database ?? "answers" },
    lease: { ok: leaseMs > 0, detail: leaseMs > 0 ? `stands for ${(leaseMs / 1_000).toFixed(1)} s` : "lost" },
    // Short is a warning: deliveries go on until there is no place for today.
    history: { ok: daysAhead !== undefined && daysAhead >= 0, detail: historyDetail(daysAhead) },
    acquirer: { ok: true, detail: parts.acquirer },
  };
  return { ready: Object.values(checks).every((check) => check.ok), checks };
}

function historyDetail(daysAhead: number | undefined): string {
  if (daysAhead === undefined) return "could not be read";
  const days = `${daysAhead} days stand ready`;
  return daysAhead < partitionsWarnBelow ? `warning: only ${days}` : days;
}

/** Undefined when it succeeded in time; otherwise why not. */
async function timed(work: Promise<void>): Promise<string | undefined> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<string>((resolve) => {
    timer = setTimeout(() => resolve(`no answer within ${databaseTimeoutMs / 1_000} s`), databaseTimeoutMs);
  });
  try {
    return await Promise.race([
      work.then(
        () => undefined,
        () => "cannot be reached",
      ),
      late,
    ]);
  } finally {
    clearTimeout(timer);
  }
}

import type { Health } from "../http/dependencies.ts";
import type { ServiceStatus } from "./service-status.ts";

const partitionsWarnBelow = 3;
const databaseTimeoutMsDefault = 2_000;

export interface HealthParts {
  readonly standing: Pick<ServiceStatus, "ping" | "daysAhead">;
  readonly leaseMs: () => number;
  readonly isStopping?: boolean;
  /** Whether delivery may own shards; undefined: this process only runs commands. */
  readonly isDeliveryFit?: (() => boolean) | undefined;
  /** The status of the acquirers, by the name of the check. */
  readonly acquirers: ReadonlyMap<string, string>;
  /** The timeout for the database. */
  readonly databaseTimeoutMs?: number;
}

/** Whether this instance can accept work now, check by check: /readyz. */
export async function health(parts: HealthParts): Promise<Health> {
  const { standing, databaseTimeoutMs = databaseTimeoutMsDefault } = parts;
  const leaseMs = parts.leaseMs();
  const [database, daysAhead] = await Promise.all([
    timed(
      standing.ping().then(
        () => undefined,
        () => "cannot be reached",
      ),
      databaseTimeoutMs,
      `no answer within ${databaseTimeoutMs / 1_000} s`,
    ),
    timed(
      standing.daysAhead().catch(() => undefined),
      databaseTimeoutMs,
      undefined,
    ),
  ]);
  const checks = {
    database: { ok: database === undefined, detail: database ?? "answers" },
    lease: { ok: leaseMs > 0, detail: leaseMs > 0 ? `is held for ${(leaseMs / 1_000).toFixed(1)} s` : "lost" },
    ...(parts.isStopping === true && { stop: { ok: false, detail: "this instance stops: use another one" } }),
    ...(parts.isDeliveryFit !== undefined && {
      // A warning: commands are accepted, and the other instances send.
      delivery: { ok: true, detail: parts.isDeliveryFit() ? "sends" : deliveryUnfit },
    }),
    // Few days are a warning: deliveries continue until today's partition is missing.
    history: { ok: daysAhead !== undefined && daysAhead >= 0, detail: historyDetail(daysAhead) },
    ...Object.fromEntries([...parts.acquirers].map(([name, detail]) => [name, { ok: true, detail }])),
  };
  return { ready: Object.values(checks).every((check) => check.ok), checks };
}

const deliveryUnfit = "warning: its statements fail, and it sends nothing: run paybell check, and see the log";

function historyDetail(daysAhead: number | undefined): string {
  if (daysAhead === undefined) return "could not be read";
  const days = `${daysAhead} days are prepared`;
  return daysAhead < partitionsWarnBelow ? `warning: only ${days}` : days;
}

/** The result of `work`, or `late` if it takes longer. */
async function timed<Value>(work: Promise<Value>, timeoutMs: number, late: Value): Promise<Value> {
  let timer: NodeJS.Timeout | undefined;
  const over = new Promise<Value>((resolve) => {
    timer = setTimeout(() => resolve(late), timeoutMs);
  });
  try {
    return await Promise.race([work, over]);
  } finally {
    clearTimeout(timer);
  }
}

import type { Acquirer, AcquirerHealth, Acquirers } from "../../acquirer/acquirer.ts";
import { settingsName } from "../../acquirer/registered/registry.ts";
import { within } from "../../clock.ts";
import type { Health } from "../../http/dependencies.ts";
import type { CurrentCountsStore } from "../../notifications/overview.ts";
import type { PendingStatus } from "../../store/deliveries/pending-status.ts";
import type { Partitions } from "../../store/schema/partitions.ts";

const keptMs = 1_000;
/** Beside an open transaction, counting must skip all deleted rows. It then runs for a tenth of the time at most. */
const restPerCount = 10;

export interface ServiceStatusParts {
  readonly status: Pick<PendingStatus, "ping" | "count" | "byPartner" | "unownedShards">;
  readonly counts: CurrentCountsStore;
  readonly partitions: Pick<Partitions, "partitionsAhead">;
  /** The number of partners with figures of their own. */
  readonly metricsPartners: number;
}

export type ServiceStatus = ReturnType<typeof serviceStatusOf>;

/** The database's current figures, for observation: read once a second at most, however many callers there are. */
export function serviceStatusOf(
  { status, counts, partitions, metricsPartners }: ServiceStatusParts,
  nowMs = () => performance.now(),
) {
  return {
    ping: rateLimited(() => status.ping(), nowMs),
    pending: rateLimited(() => status.count(), nowMs, restPerCount),
    byPartner: rateLimited(
      () => (metricsPartners === 0 ? Promise.resolve([]) : status.byPartner(metricsPartners)),
      nowMs,
      restPerCount,
    ),
    unownedShards: rateLimited(() => status.unownedShards(), nowMs),
    currentCounts: rateLimited(() => counts.counts(), nowMs, restPerCount),
    daysAhead: rateLimited(() => partitions.partitionsAhead(), nowMs),
  };
}

/**
 * Shares a running query among its callers, and returns its answer for a second afterwards, or for `restPerAnswer`
 * times as long as it took.
 */
function rateLimited<Value>(ask: () => Promise<Value>, nowMs: () => number, restPerAnswer = 0): () => Promise<Value> {
  let last: Promise<Value> | undefined;
  let endsAtMs = Number.POSITIVE_INFINITY;
  return () => {
    if (last !== undefined && nowMs() < endsAtMs) return last;
    const askedAtMs = nowMs();
    const asked = ask();
    last = asked;
    endsAtMs = Number.POSITIVE_INFINITY;
    // A failure is cached as well, so that an unavailable database is not queried by every caller.
    const keepFor = (ms: number) => {
      endsAtMs = nowMs() + ms;
    };
    asked.then(
      () => keepFor(Math.max(keptMs, (nowMs() - askedAtMs) * restPerAnswer)),
      () => keepFor(keptMs),
    );
    return asked;
  };
}

/**
 * The acquirers' status for /readyz, by name. A link that is down is a warning: reports, deliveries and queries
 * continue.
 *
 * @param ofSettings the name of the acquirer of the settings
 */
export function acquirerDetails(ofSettings: string, acquirers: Acquirers): ReadonlyMap<string, string> {
  const registered = acquirers.names().filter((name) => name !== "");
  return new Map([
    ["acquirer", detailOf(ofSettings, acquirers.of(""))],
    ...registered.map((name) => [`acquirer ${name}`, detailOf("iso8583", acquirers.of(name))] as const),
  ]);
}

function detailOf(name: string, acquirer: Acquirer): string {
  const health = acquirer.health?.();
  if (health === undefined) return name;
  return health.ok ? `${name}: ${health.detail}` : `warning: ${name}: ${health.detail}`;
}

/** The state of a registered acquirer's link. An instance that runs no commands has none open. */
export function registeredHealth(name: string, acquirers: Acquirers): AcquirerHealth {
  const closed = { ok: false, detail: "is not open on this instance" };
  return acquirers.of(name).health?.() ?? closed;
}

/** The acquirer of the settings. One without a link, such as the simulator, can always be asked. */
export function settingsHealth(
  kind: string,
  acquirers: Acquirers,
): { readonly kind: string; readonly health: AcquirerHealth } {
  const ok = acquirers.has("");
  const health = acquirers.of("").health?.() ?? {
    ok,
    detail: ok ? "needs no link to a host" : "none is set: commands need a registered one",
  };
  return { kind, health };
}

/** Whether each acquirer can be asked now, by the name that metrics and events use. */
export function acquirerLinks(acquirers: Acquirers): ReadonlyMap<string, boolean> {
  const names = acquirers.names();
  return new Map(names.map((name) => [name || settingsName, acquirers.of(name).health?.().ok !== false]));
}

const partitionsWarnBelow = 3;
const databaseTimeoutMs = 2_000;

export interface HealthParts {
  readonly serviceStatus: Pick<ServiceStatus, "ping" | "daysAhead">;
  readonly leaseMs: () => number;
  readonly isStopping?: boolean;
  /** Whether delivery may own shards; undefined: this process only runs commands. */
  readonly isDeliveryFit?: (() => boolean) | undefined;
  /** The status of the acquirers, by the name of the check. */
  readonly acquirers: ReadonlyMap<string, string>;
}

/** Whether this instance can accept work now, check by check: /readyz. */
export async function health(parts: HealthParts): Promise<Health> {
  const { serviceStatus } = parts;
  const leaseMs = parts.leaseMs();
  const ping = serviceStatus.ping().then(
    () => ({ ok: true, detail: "answers" }),
    () => ({ ok: false, detail: "cannot be reached" }),
  );
  const days = serviceStatus.daysAhead().catch(() => undefined);
  const [database, daysAhead] = await Promise.all([within(databaseTimeoutMs, ping), within(databaseTimeoutMs, days)]);
  const checks = {
    database: database ?? { ok: false, detail: `no answer within ${databaseTimeoutMs / 1_000} s` },
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

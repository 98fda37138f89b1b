import type { CurrentCounts, CurrentCountsStore } from "../notifications/overview.ts";
import type { PartnerBacklog, PendingCount, PendingStatus } from "../store/deliveries/pending-status.ts";
import type { Partitions } from "../store/schema/partitions.ts";

const keptMs = 1_000;
/** Beside an open transaction, counting must skip all deleted rows. It then runs for a tenth of the time at most. */
const restPerCount = 10;

/** The database's current figures, for observation: read once a second at most, however many callers there are. */
export interface ServiceStatus {
  /** Rejects if the database does not answer. */
  ping(): Promise<void>;
  pending(): Promise<PendingCount>;
  byPartner(): Promise<readonly PartnerBacklog[]>;
  unownedShards(): Promise<readonly number[]>;
  currentCounts(): Promise<CurrentCounts>;
  daysAhead(): Promise<number>;
}

export interface ServiceStatusParts {
  readonly status: Pick<PendingStatus, "ping" | "count" | "byPartner" | "unownedShards">;
  readonly counts: CurrentCountsStore;
  readonly partitions: Pick<Partitions, "partitionsAhead">;
  /** The number of partners with figures of their own. */
  readonly metricsPartners: number;
}

export function serviceStatusOf(
  { status, counts, partitions, metricsPartners }: ServiceStatusParts,
  nowMs = () => performance.now(),
): ServiceStatus {
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

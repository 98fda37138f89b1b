import type { PartnerBacklog, PendingCount, PendingStatus } from "../store/deliveries/pending-status.ts";
import type { Partitions } from "../store/schema/partitions.ts";

const keptMs = 1_000;
/** Beside a transaction that stays open, whoever counts passes by all that is gone: for a tenth of the time at most. */
const restPerCount = 10;

/** What the database says of how things stand, for whoever watches: asked once a second at most, however many look. */
export interface ServiceStatus {
  /** Rejects when the database does not answer. */
  ping(): Promise<void>;
  pending(): Promise<PendingCount>;
  byPartner(): Promise<readonly PartnerBacklog[]>;
  unownedShards(): Promise<number>;
  daysAhead(): Promise<number>;
}

export interface ServiceStatusParts {
  readonly status: Pick<PendingStatus, "ping" | "count" | "byPartner" | "unownedShards">;
  readonly partitions: Pick<Partitions, "partitionsAhead">;
  /** How many partners are counted by themselves. */
  readonly metricsPartners: number;
}

export function serviceStatusOf(
  { status, partitions, metricsPartners }: ServiceStatusParts,
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
    daysAhead: rateLimited(() => partitions.partitionsAhead(), nowMs),
  };
}

/**
 * Who asks while a question is under way waits for its answer; for a second from then on, that answer is given, and for
 * longer where it took long and `restPerAnswer` says how many times as long.
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
    // A failure is kept as long: a database that is away is not asked by everybody who looks.
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

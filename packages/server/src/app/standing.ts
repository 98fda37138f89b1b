import type { PartnerBacklog, PendingCount, PendingStatus } from "../store/deliveries/pending-status.ts";
import type { Partitions } from "../store/schema/partitions.ts";

const keptMs = 1_000;
/** Beside a transaction that stays open, whoever counts passes by all that is gone: for a tenth of the time at most. */
const restPerCount = 10;

/** What the database says of how things stand, for whoever watches: asked once a second at most, however many look. */
export interface Standing {
  /** Rejects when the database does not answer. */
  ping(): Promise<void>;
  pending(): Promise<PendingCount>;
  byPartner(): Promise<readonly PartnerBacklog[]>;
  unownedShards(): Promise<number>;
  daysAhead(): Promise<number>;
}

export interface StandingParts {
  readonly status: Pick<PendingStatus, "ping" | "count" | "byPartner" | "unownedShards">;
  readonly partitions: Pick<Partitions, "partitionsAhead">;
  /** How many partners are counted by themselves. */
  readonly metricsPartners: number;
}

export function standingOf(
  { status, partitions, metricsPartners }: StandingParts,
  nowMs = () => performance.now(),
): Standing {
  return {
    ping: seldom(() => status.ping(), nowMs),
    pending: seldom(() => status.count(), nowMs, restPerCount),
    byPartner: seldom(
      () => (metricsPartners === 0 ? Promise.resolve([]) : status.byPartner(metricsPartners)),
      nowMs,
      restPerCount,
    ),
    unownedShards: seldom(() => status.unownedShards(), nowMs),
    daysAhead: seldom(() => partitions.partitionsAhead(), nowMs),
  };
}

/**
 * Who asks while a question is under way waits for its answer; for a second from then on, that answer is given, and for
 * longer where it took long and `restPerAnswer` says how many times as long.
 */
function seldom<Value>(ask: () => Promise<Value>, nowMs: () => number, restPerAnswer = 0): () => Promise<Value> {
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

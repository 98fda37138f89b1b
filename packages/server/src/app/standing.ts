import type { PendingStanding, PostgresDeliveries } from "../store/deliveries.ts";
import type { Partitions } from "../store/partitions.ts";

const keptMs = 1_000;

/** What the database says of how things stand, for whoever watches: asked once a second at most, however many look. */
export interface Standing {
  /** Rejects when the database does not answer. */
  ping(): Promise<void>;
  pending(): Promise<PendingStanding>;
  daysAhead(): Promise<number>;
}

export interface StandingParts {
  readonly deliveries: Pick<PostgresDeliveries, "ping" | "standing">;
  readonly partitions: Pick<Partitions, "partitionsAhead">;
}

export function standingOf({ deliveries, partitions }: StandingParts, nowMs = () => performance.now()): Standing {
  return {
    ping: seldom(() => deliveries.ping(), nowMs),
    pending: seldom(() => deliveries.standing(), nowMs),
    daysAhead: seldom(() => partitions.partitionsAhead(), nowMs),
  };
}

/** Who asks while a question is under way waits for its answer; for a second from then on, that answer is given. */
function seldom<Value>(ask: () => Promise<Value>, nowMs: () => number): () => Promise<Value> {
  let last: Promise<Value> | undefined;
  let endsAtMs = Number.POSITIVE_INFINITY;
  return () => {
    if (last !== undefined && nowMs() < endsAtMs) return last;
    const asked = ask();
    last = asked;
    endsAtMs = Number.POSITIVE_INFINITY;
    // A failure is kept as long: a database that is away is not asked by everybody who looks.
    const ends = () => {
      endsAtMs = nowMs() + keptMs;
    };
    asked.then(ends, ends);
    return asked;
  };
}

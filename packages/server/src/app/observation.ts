import type { Attempted, Dispatcher } from "../delivery/dispatcher.ts";
import type { Claimed } from "../delivery/store.ts";
import type { Lease } from "../instance.ts";
import type { Metrics } from "../metrics.ts";
import type { PostgresDeliveries } from "../store/deliveries.ts";
import type { Partitions } from "../store/partitions.ts";

/** Counts what became of one attempt. */
export function countAttempt(metrics: Metrics, claimed: Claimed, { attempt, next }: Attempted): void {
  const outcome = attempt.reason ?? "accepted";
  metrics.attemptSeconds.observe({ outcome }, attempt.durationMs / 1_000);
  if (attempt.reason !== null) metrics.attemptsFailed.inc({ reason: attempt.reason });
  if (next.kind === "parked") metrics.notificationsParked.inc({ reason: outcome });
  if (next.kind !== "accepted") return;
  metrics.notificationsAccepted.inc({ command: claimed.command });
  const sinceMs = attempt.startedAtMs + attempt.durationMs - claimed.scheduleStartMs;
  metrics.deliverySeconds.observe({ command: claimed.command }, Math.max(0, sinceMs) / 1_000);
}

export interface Observed {
  readonly dispatcher: Dispatcher;
  readonly lease: Lease;
  readonly deliveries: PostgresDeliveries;
  readonly partitions: Partitions;
}

/** Reads, every time somebody looks at the metrics, what stands rather than happens. */
export function observeStanding(metrics: Metrics, { dispatcher, lease, deliveries, partitions }: Observed): void {
  metrics.onRead(async () => {
    metrics.slotsInUse.set(dispatcher.slots.taken);
    metrics.bytesInFlight.set(dispatcher.slots.bytes);
    metrics.leaseRemainingSeconds.set(lease.remainingMs() / 1_000);
    const [standing, daysAhead] = await Promise.all([deliveries.standing(), partitions.partitionsAhead()]);
    metrics.pending.set(standing.count);
    metrics.oldestPendingSeconds.set(standing.oldestMs === undefined ? 0 : (Date.now() - standing.oldestMs) / 1_000);
    metrics.partitionsAhead.set(daysAhead);
  });
}

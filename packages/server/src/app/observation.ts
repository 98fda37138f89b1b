import type { Acquirers } from "../acquirer/acquirers.ts";
import type { AttemptResult } from "../delivery/attempt.ts";
import type { AttemptedDelivery, WorkerStatus } from "../delivery/thread/messages.ts";
import type { LeaseHolder } from "../leases/lease.ts";
import type { Metrics } from "../metrics.ts";
import type { LongPolls } from "../notifications/long-polls.ts";
import { acquirerLinks } from "./acquirer-watch.ts";
import type { DeliveryParts } from "./delivery.ts";
import type { PartnerMetrics } from "./partner-metrics.ts";
import type { ServiceStatus } from "./service-status.ts";

/** Counts the result of one attempt. */
export function countAttempt(
  metrics: Metrics,
  partners: PartnerMetrics,
  delivery: AttemptedDelivery,
  { attempt, next }: AttemptResult,
): void {
  const outcome = attempt.reason ?? "accepted";
  metrics.attemptSeconds.observe({ outcome }, attempt.durationMs / 1_000);
  if (attempt.reason !== null) {
    metrics.attemptsFailed.inc({ reason: attempt.reason });
    partners.failed(delivery.partnerId, attempt.reason);
  }
  if (next.kind === "parked") metrics.notificationsParked.inc({ reason: outcome });
  if (next.kind !== "accepted") return;
  metrics.notificationsAccepted.inc({ command: delivery.command });
  const sinceMs = attempt.startedAtMs + attempt.durationMs - delivery.scheduleStartMs;
  const seconds = Math.max(0, sinceMs) / 1_000;
  metrics.deliverySeconds.observe({ command: delivery.command }, seconds);
  partners.accepted(delivery.partnerId, seconds);
}

export interface Observed {
  readonly arrivals: Pick<LongPolls, "waiting">;
  readonly delivery: Pick<DeliveryParts, "workers" | "inFlight">;
  /** The lease for commands; undefined if none are run. */
  readonly lease: Pick<LeaseHolder, "remainingMs"> | undefined;
  readonly database: { readonly [Name in "pool" | "engine"]: { readonly waitingCount: number } };
  readonly standing: Pick<ServiceStatus, "pending" | "byPartner" | "daysAhead" | "unownedShards" | "currentCounts">;
  readonly partnerMetrics: PartnerMetrics;
  readonly acquirers: Acquirers;
}

/** Reads current values, each time the metrics are read. */
export function observeStatus(metrics: Metrics, observed: Observed): void {
  const { delivery, arrivals, database, lease, standing, partnerMetrics, acquirers } = observed;
  metrics.onRead(async () => {
    metrics.acquirerLinks.reset();
    for (const [acquirer, canAsk] of acquirerLinks(acquirers)) metrics.acquirerLinks.set({ acquirer }, canAsk ? 1 : 0);
    const sumOf = (read: (status: WorkerStatus) => number) =>
      delivery.workers.reduce((sum, { status }) => sum + (status === undefined ? 0 : read(status)), 0);
    metrics.slotsInUse.set(delivery.inFlight());
    metrics.queuedRows.set(sumOf(({ rows }) => rows));
    metrics.pullsWaiting.set(arrivals.waiting);
    metrics.unrecorded.set(sumOf(({ unrecorded }) => unrecorded));
    for (const pool of ["pool", "engine"] as const) metrics.databaseWaiting.set({ pool }, database[pool].waitingCount);
    metrics.bytesInFlight.set(sumOf(({ bytes }) => bytes));
    const leasesMs = delivery.workers.map((worker) => Math.max(0, worker.leaseMs()));
    if (lease !== undefined) leasesMs.push(lease.remainingMs());
    metrics.leaseRemainingSeconds.set(Math.min(...leasesMs) / 1_000);
    const [{ count, oldestMs, parked }, byPartner, daysAhead, unowned, { reversalsParked }] = await Promise.all([
      standing.pending(),
      standing.byPartner(),
      standing.daysAhead(),
      standing.unownedShards(),
      standing.currentCounts(),
    ]);
    partnerMetrics.show(byPartner, Date.now());
    metrics.shardsUnowned.set(unowned.length);
    metrics.pending.set(count);
    metrics.parked.set(parked);
    metrics.reversalsParked.set(reversalsParked);
    metrics.oldestPendingSeconds.set(oldestMs === undefined ? 0 : (Date.now() - oldestMs) / 1_000);
    metrics.partitionsAhead.set(daysAhead);
  });
}

import type { Acquirers } from "../acquirer/acquirers.ts";
import type { AttemptedDelivery, AttemptResult } from "../delivery/attempt.ts";
import type { DeliveryWorker } from "../delivery/worker.ts";
import type { LeaseHolder } from "../leases/lease.ts";
import type { Metrics } from "../metrics.ts";
import type { LongPolls } from "../notifications/long-polls.ts";
import { acquirerLinks } from "./acquirer-watch.ts";
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

const busyEveryMs = 50;

/** @returns whether this process's event loop was busy for at least this share of the last moment, from 0 to 1 */
export function busyShareOf(share: number): () => boolean {
  let usage = performance.eventLoopUtilization();
  let isBusy = false;
  let readMs = performance.now();
  return () => {
    const nowMs = performance.now();
    if (nowMs - readMs < busyEveryMs) return isBusy;
    isBusy = performance.eventLoopUtilization(usage).utilization >= share;
    usage = performance.eventLoopUtilization();
    readMs = nowMs;
    return isBusy;
  };
}

export interface Observed {
  readonly arrivals: Pick<LongPolls, "waiting">;
  readonly worker: Pick<DeliveryWorker, "status"> | undefined;
  readonly lease: Pick<LeaseHolder, "remainingMs">;
  readonly database: { readonly [Name in "pool" | "engine"]: { readonly waitingCount: number } };
  readonly standing: Pick<ServiceStatus, "pending" | "byPartner" | "daysAhead" | "unownedShards" | "currentCounts">;
  readonly partnerMetrics: PartnerMetrics;
  readonly acquirers: Acquirers;
}

/** Reads current values, each time the metrics are read. */
export function observeStatus(metrics: Metrics, observed: Observed): void {
  const { worker, arrivals, database, lease, standing, partnerMetrics, acquirers } = observed;
  metrics.onRead(async () => {
    metrics.acquirerLinks.reset();
    for (const [acquirer, canAsk] of acquirerLinks(acquirers)) metrics.acquirerLinks.set({ acquirer }, canAsk ? 1 : 0);
    const { slots, rows, unrecorded, bytes } = worker?.status ?? { slots: 0, rows: 0, unrecorded: 0, bytes: 0 };
    metrics.slotsInUse.set(slots);
    metrics.queuedRows.set(rows);
    metrics.pullsWaiting.set(arrivals.waiting);
    metrics.unrecorded.set(unrecorded);
    for (const pool of ["pool", "engine"] as const) metrics.databaseWaiting.set({ pool }, database[pool].waitingCount);
    metrics.bytesInFlight.set(bytes);
    metrics.leaseRemainingSeconds.set(lease.remainingMs() / 1_000);
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

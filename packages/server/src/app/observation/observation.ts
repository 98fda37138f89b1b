import { PerformanceObserver } from "node:perf_hooks";
import { commands, notifiedCommands } from "@paybell/contract";
import type { Acquirers } from "../../acquirer/acquirer.ts";
import { alertKinds } from "../../alerts/kinds.ts";
import type { AttemptedDelivery, AttemptResult } from "../../delivery/attempt/attempt.ts";
import { failureReasons } from "../../delivery/delivery.ts";
import { egressFailureKinds } from "../../delivery/transport/egress-proxy.ts";
import type { DeliveryWorker } from "../../delivery/worker/worker.ts";
import type { PartnerId } from "../../ids.ts";
import type { LeaseHolder } from "../../leases/lease.ts";
import type { LongPolls } from "../../notifications/long-polls.ts";
import type { PartnerBacklog } from "../../store/deliveries/pending-status.ts";
import type { TroubleLog } from "../../telemetry/log.ts";
import type { Metrics } from "../../telemetry/metrics.ts";
import { acquirerLinks, type ServiceStatus } from "./health.ts";

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
  readonly serviceStatus: Pick<
    ServiceStatus,
    "pending" | "byPartner" | "daysAhead" | "unownedShards" | "currentCounts"
  >;
  readonly partnerMetrics: PartnerMetrics;
  readonly acquirers: Acquirers;
}

/** Reads current values, each time the metrics are read. */
export function observeStatus(metrics: Metrics, observed: Observed): void {
  const { worker, arrivals, database, lease, serviceStatus, partnerMetrics, acquirers } = observed;
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
      serviceStatus.pending(),
      serviceStatus.byPartner(),
      serviceStatus.daysAhead(),
      serviceStatus.unownedShards(),
      serviceStatus.currentCounts(),
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

const others = "other";

/**
 * Counts by partner, with a bounded number of labels: each costs Prometheus a dozen series. The first partners have a
 * label of their own for the life of the process; all others share `other`.
 */
export class PartnerMetrics {
  readonly #metrics: Metrics;
  readonly #partnersMax: number;
  readonly #labelled = new Set<string>();

  constructor(metrics: Metrics, partnersMax: number) {
    this.#metrics = metrics;
    this.#partnersMax = partnersMax;
  }

  /** Its counters begin at 0, if it gets a label: an increase is seen only of a series that exists. */
  know(partnerId: PartnerId): void {
    this.#labelOf(partnerId);
  }

  accepted(partnerId: PartnerId, seconds: number): void {
    const partner = this.#labelOf(partnerId);
    if (partner === undefined) return;
    this.#metrics.partnerAccepted.inc({ partner });
    this.#metrics.partnerDeliverySeconds.observe({ partner }, seconds);
  }

  failed(partnerId: PartnerId, reason: string): void {
    const partner = this.#labelOf(partnerId);
    if (partner !== undefined) this.#metrics.partnerAttemptsFailed.inc({ partner, reason });
  }

  /**
   * Sets the current backlog only for partners that have a label or can get one: a partial sum of the others would
   * mislead.
   */
  show(backlogs: readonly PartnerBacklog[], nowMs: number): void {
    const { partnerPending, partnerParked, partnerOldestPendingSeconds } = this.#metrics;
    for (const gauge of [partnerPending, partnerParked, partnerOldestPendingSeconds]) gauge.reset();
    for (const { partnerId, pending, parked, oldestMs } of backlogs) {
      const partner = this.#labelOf(partnerId);
      if (partner === undefined || partner === others) continue;
      partnerPending.set({ partner }, pending);
      partnerParked.set({ partner }, parked);
      partnerOldestPendingSeconds.set({ partner }, oldestMs === undefined ? 0 : Math.max(0, nowMs - oldestMs) / 1_000);
    }
  }

  /** Undefined if nothing is counted by partner. */
  #labelOf(partnerId: PartnerId): string | undefined {
    if (this.#labelled.has(partnerId)) return partnerId;
    if (this.#partnersMax === 0) return undefined;
    const label = this.#labelled.size >= this.#partnersMax ? others : partnerId;
    if (label === partnerId) this.#labelled.add(partnerId);
    this.#metrics.partnerAccepted.inc({ partner: label }, 0);
    for (const reason of failureReasons) this.#metrics.partnerAttemptsFailed.inc({ partner: label, reason }, 0);
    return label;
  }
}

/**
 * Rules for alerts look at increases. A series has none at its first event if it begins with that, so each whose labels
 * are known begins at 0. Those of routes, partners and acquirers do when these are.
 */
export function beginAtZero(metrics: Metrics): void {
  for (const kind of alertKinds) metrics.alerts.inc({ kind }, 0);
  for (const kind of egressFailureKinds) metrics.egressFailures.inc({ kind }, 0);
  for (const approved of ["true", "false"]) metrics.lateAnswers.inc({ approved }, 0);
  for (const result of ["same", "different"]) metrics.settlementsCompared.inc({ result }, 0);
  for (const result of ["done", "failed"]) metrics.intakeFiles.inc({ result }, 0);
  for (const batch of ["inits", "completions", "outcomes"]) metrics.groupCommitRefused.inc({ batch }, 0);
  for (const reason of ["waiting", "unread", "stream", "busy"]) metrics.connectionsClosed.inc({ reason }, 0);
  for (const reason of ["wrong_key", "too_many_wrong_keys", "address"]) metrics.callersRefused.inc({ reason }, 0);
  for (const limit of ["requests", "pulls", "async", "redeliveries", "anonymous"]) {
    metrics.requestsLimited.inc({ limit }, 0);
  }
  for (const table of ["transactions", "reversals", "batches"]) metrics.ledgerDropped.inc({ table }, 0);
  for (const reason of ["not_accepted", "queue_full"]) metrics.traceSpansDropped.inc({ reason }, 0);
  for (const reason of failureReasons) metrics.attemptsFailed.inc({ reason }, 0);
  for (const reason of [...failureReasons, "endpoint"]) metrics.notificationsParked.inc({ reason }, 0);
  for (const command of notifiedCommands) {
    metrics.notificationsCreated.inc({ command }, 0);
    metrics.notificationsAccepted.inc({ command }, 0);
  }
  for (const command of commands) {
    for (const outcome of ["SUCCESS", "ERROR"]) metrics.commands.inc({ command, outcome }, 0);
  }
  for (const command of [...commands, "unknown"]) {
    for (const result of ["accepted", "duplicate", "conflict", "refused", "unavailable"]) {
      metrics.reports.inc({ command, result }, 0);
    }
  }
}

const loopCheckEveryMs = 250;
const blockedMs = 1_000;
/** From this share of the time on, something is its cause. */
const mostShare = 0.6;

/** Logs that the event loop was blocked for more than a second, and by what. @returns a function that ends the watch */
export function watchLoop(log: Pick<TroubleLog, "warn">): () => void {
  let collectingMs = 0;
  const collections = new PerformanceObserver((list) => {
    for (const { duration } of list.getEntries()) collectingMs += duration;
  });
  collections.observe({ entryTypes: ["gc"] });
  let checkedMs = performance.now();
  let usage = process.cpuUsage();
  const timer = setInterval(() => {
    const nowMs = performance.now();
    const forMs = nowMs - checkedMs - loopCheckEveryMs;
    if (forMs >= blockedMs) {
      const { user, system } = process.cpuUsage(usage);
      const cause = causeOf({ forMs, processorMs: (user + system) / 1_000, collectingMs });
      log.warn({ blockedMs: Math.round(forMs), cause }, "the event loop was blocked");
    }
    checkedMs = nowMs;
    usage = process.cpuUsage();
    collectingMs = 0;
  }, loopCheckEveryMs);
  timer.unref();
  return () => {
    clearInterval(timer);
    collections.disconnect();
  };
}

export interface Blocked {
  readonly forMs: number;
  /** Processor time of all threads of the process. */
  readonly processorMs: number;
  readonly collectingMs: number;
}

export function causeOf({ forMs, processorMs, collectingMs }: Blocked): string {
  if (collectingMs >= forMs * mostShare) return "garbage collection: it needs more memory";
  if (processorMs >= forMs * mostShare) return "work of its own, such as a very large request or notification";
  return "the machine: other programs had its processors, or it was suspended";
}

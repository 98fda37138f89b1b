import { systemClock, systemTimers } from "../clock.ts";
import type { AttemptResult } from "../delivery/attempt.ts";
import { Backpressure } from "../delivery/backpressure.ts";
import { SealingWorker } from "../delivery/sending/sealing-worker.ts";
import { Hints } from "../delivery/thread/hints.ts";
import type { AttemptedDelivery, FromWorker } from "../delivery/thread/messages.ts";
import { WorkerSupervisor } from "../delivery/thread/supervisor.ts";
import type { PartnerId } from "../ids.ts";
import { FigureCounter } from "../notifications/figures.ts";
import type { HomeAddress } from "../store/database/citus.ts";
import { PostgresEndpoints } from "../store/deliveries/endpoints.ts";
import { PostgresFigures } from "../store/deliveries/figures.ts";
import { PendingStatus } from "../store/deliveries/pending-status.ts";
import type { PostgresLeases } from "../store/leases.ts";
import type { DeliveryThreadData } from "./delivery-thread.ts";
import type { Infrastructure } from "./infrastructure.ts";
import { countAttempt } from "./observation.ts";
import type { PartnerParts } from "./partners.ts";
import { UnreadablePartners } from "./unreadable-partners.ts";

/** Called for each attempt: the sandbox shows them. */
export type OnAttempt = (delivery: AttemptedDelivery, attempted: AttemptResult) => void;

export interface DeliveryOptions {
  readonly databaseUrl: string;
  readonly homes: readonly HomeAddress[] | undefined;
  readonly leases: PostgresLeases;
  /** Delivery workers of this process: none if it only runs commands. */
  readonly workers: number;
  /** PEM certificates that are trusted for callbacks in addition to the well-known CAs. */
  readonly callbackCas: readonly string[];
  readonly onAttempt?: OnAttempt | undefined;
}

export type DeliveryParts = ReturnType<typeof wireDelivery>;

const workerConnections = 6;
/** A thread with at least this busy share sends as fast as it can. */
const busyShare = 0.8;
/** Bound on deliveries in flight, those whose outcome is not recorded yet, and some that are sent next. */
const rowsAheadPerSlot = 2;
/** The figures of this time are lost in a crash. */
const flushEveryMs = 2_000;

/** Wires delivery: the workers, and the hints to them. */
export function wireDelivery(infrastructure: Infrastructure, { directory }: PartnerParts, options: DeliveryOptions) {
  const { database, config, log, metrics, partnerMetrics, tracing } = infrastructure;
  const { sandbox, alerting, alerts, closing, warn, watch } = infrastructure;
  const entry = import.meta.url.endsWith(".ts") ? "./delivery-thread.ts" : "./delivery-thread.js";
  const data: DeliveryThreadData = {
    databaseUrl: options.databaseUrl,
    homes: options.homes,
    databaseConnections: workerConnections,
    sandbox,
    callbackCas: options.callbackCas,
    connectTimeoutMs: config.connectTimeoutMs,
    attemptTimeoutMs: config.attemptTimeoutMs,
    slotsMax: config.slotsMax,
    bytesInFlightMax: config.bytesInFlightMax,
    alerting,
  };
  const figures = new PostgresFigures(database.homes);
  const counter = new FigureCounter(figures);
  const { onFlush } = watch("outcomes");
  const observe = (message: FromWorker) => {
    for (const [rows, durationMs, waitingRows] of message.commits) {
      onFlush?.(rows, durationMs, waitingRows);
      backpressure.recorded(rows);
    }
    for (const [delivery, attempted] of message.attempted) {
      countAttempt(metrics, partnerMetrics, delivery, attempted);
      counter.count(delivery, attempted);
      tracing?.traces.attempted(delivery, attempted);
      options.onAttempt?.(delivery, attempted);
    }
    if (message.parkedOverdue > 0) metrics.notificationsParked.inc({ reason: "endpoint" }, message.parkedOverdue);
  };
  const unreadable = new UnreadablePartners((partnerId, error) => {
    log.error({ err: error, partner: partnerId }, "a partner's keys cannot be opened: its notifications wait");
    const detail = { detail: "Its settings or keys cannot be read; its notifications wait." };
    void alerts.record({ kind: "partner_unreadable", partnerId, subjectId: null, detail });
  });
  const workers = Array.from(
    { length: options.workers },
    (_, at) =>
      new WorkerSupervisor({
        timers: systemTimers,
        entry: new URL(entry, import.meta.url),
        data,
        name: `paybell delivery ${at + 1}`,
        log,
        findPartner: (id) => unreadable.watch(id, directory.confirmed(id)),
        removeLease: (id) => options.leases.remove(id),
        onMessage: observe,
      }),
  );
  closing.push(() => Promise.all(workers.map((worker) => worker.stop(0))));
  const backpressure = new Backpressure({
    isBusy: () => workers.some((worker) => worker.busyShare() >= busyShare),
    rowsMax: config.slotsMax * rowsAheadPerSlot,
    clock: systemClock,
    timers: systemTimers,
  });
  const status = new PendingStatus(database);
  const hints = new Hints({
    workers,
    announce: (payload) => status.announceDue(payload),
    onOffered: () => backpressure.handedOver(),
    onTrouble: warn("the other instances could not be notified of due deliveries"),
  });
  // Pages for pulling partners are sealed in a separate thread of this process.
  const sealingWorker = new SealingWorker({
    log,
    onHanded: (waitedMs) => metrics.sealingWaitSeconds.observe(waitedMs / 1_000),
  });
  closing.push(() => sealingWorker.stop());
  metrics.onRead(async () => {
    for (const [at, worker] of workers.entries()) {
      const seconds = (worker.status?.busyMs ?? 0) / 1_000;
      metrics.threadBusySeconds.set({ thread: `delivery ${at + 1}` }, seconds);
    }
    metrics.threadBusySeconds.set({ thread: "main" }, performance.eventLoopUtilization().active / 1_000);
    const waiting = workers.reduce((sum, worker) => sum + (worker.status?.sealingWaiting ?? 0), 0);
    metrics.sealingWaiting.set(waiting + sealingWorker.status.waitingChars);
  });
  let flushing: ReturnType<typeof setInterval> | undefined;
  closing.push(() => clearInterval(flushing));
  const endpoints = new PostgresEndpoints(database, { alerting });
  return {
    workers,
    hints,
    backpressure,
    status,
    sealingWorker,
    endpoints,
    figures,
    start() {
      flushing = setInterval(() => void counter.flush().catch(warn("figures could not be added")), flushEveryMs);
      for (const worker of workers) worker.start();
    },
    /** Notifies this process's workers of news. */
    tell(news: "shards" | "circuits" | "due") {
      for (const worker of workers) worker.notify(news);
    },
    partnerChanged(partnerId: PartnerId) {
      for (const worker of workers) worker.partnerChanged(partnerId);
    },
    /** For how long all workers still hold their leases; negative: for how long one has had none. */
    leaseMs: () => Math.min(...workers.map((worker) => worker.leaseMs())),
    /** POSTs in flight. */
    inFlight: () => workers.reduce((sum, worker) => sum + worker.slots, 0),
    async stop() {
      await Promise.all(workers.map((worker) => worker.stop(config.drainTimeoutMs)));
      clearInterval(flushing);
      await counter.flush();
    },
  };
}

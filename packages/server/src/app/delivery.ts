import { systemClock, systemTimers } from "../clock.ts";
import { type AttemptedDelivery, type AttemptResult, attemptMaker, faultOf } from "../delivery/attempt/attempt.ts";
import { firstDelivery } from "../delivery/delivery.ts";
import { Backpressure } from "../delivery/limits/backpressure.ts";
import { createResolver } from "../delivery/transport/addresses.ts";
import { Transport } from "../delivery/transport/transport.ts";
import { Hints } from "../delivery/worker/hints.ts";
import { DeliveryPartners } from "../delivery/worker/partners.ts";
import { DeliveryWorker } from "../delivery/worker/worker.ts";
import type { Lease } from "../leases/lease.ts";
import type { Notifier } from "../ledger/notifier.ts";
import type { LongPolls } from "../notifications/long-polls.ts";
import { FigureCounter } from "../notifications/overview.ts";
import type { PostgresListener } from "../store/database/client.ts";
import { postgresCircuits, postgresEndpoints } from "../store/deliveries/circuits.ts";
import { PostgresDeliveries } from "../store/deliveries/deliveries.ts";
import { postgresFigures } from "../store/deliveries/figures.ts";
import { PendingStatus } from "../store/deliveries/pending-status.ts";
import { postgresShards } from "../store/deliveries/shards.ts";
import { readReqId } from "../store/transactions/transactions.ts";
import type { Traces } from "../tracing/traces.ts";
import type { Infrastructure } from "./infrastructure.ts";
import { busyShareOf, countAttempt } from "./observation/observation.ts";
import type { PartnerParts } from "./partners.ts";

/** Called for each attempt: the sandbox shows them. */
export type OnAttempt = (delivery: AttemptedDelivery, attempted: AttemptResult) => void;

export interface DeliveryOptions {
  /** False: this process only runs commands. */
  readonly sends: boolean;
  readonly lease: Lease;
  /** The connection of the lease. */
  readonly listener: Pick<PostgresListener, "connection">;
  /** PEM certificates that are trusted for callbacks in addition to the well-known CAs. */
  readonly callbackCas: readonly string[];
  readonly onAttempt?: OnAttempt | undefined;
}

export type DeliveryParts = ReturnType<typeof wireDelivery>;

/** An event loop with at least this busy share does as much as it can. */
const busyShare = 0.8;
/** Bound on deliveries in flight, those whose outcome is not recorded yet, and some that are sent next. */
const rowsAheadPerSlot = 1;
/** The figures of this time are lost in a crash. */
const flushEveryMs = 2_000;

/** Wires delivery: the worker, and the hints to it and to those of other processes. */
export function wireDelivery(infrastructure: Infrastructure, partners: PartnerParts, options: DeliveryOptions) {
  const { database, config, metrics, closing, warn } = infrastructure;
  const figures = postgresFigures(database.homes);
  const counter = new FigureCounter(figures);
  const backpressure = new Backpressure({
    isBusy: busyShareOf(busyShare),
    rowsMax: config.slotsMax * rowsAheadPerSlot,
    clock: systemClock,
    timers: systemTimers,
  });
  const worker = options.sends ? openWorker(infrastructure, partners, options, { counter, backpressure }) : undefined;
  const status = new PendingStatus(database);
  const hints = new Hints({
    worker,
    announce: (payload) => status.announceDue(payload),
    timers: systemTimers,
    onOffered: () => backpressure.handedOver(),
    onTrouble: warn("a due delivery could not be passed on"),
  });
  metrics.onRead(async () => metrics.loopBusySeconds.set(performance.eventLoopUtilization().active / 1_000));
  let flushing: ReturnType<typeof setInterval> | undefined;
  closing.push(() => clearInterval(flushing));
  const endpoints = postgresEndpoints(database, { alerting: infrastructure.alerting });
  return {
    worker,
    hints,
    backpressure,
    status,
    endpoints,
    figures,
    start() {
      flushing = setInterval(() => void counter.flush().catch(warn("figures could not be added")), flushEveryMs);
      worker?.start();
    },
    inFlight: () => worker?.status.slots ?? 0,
    async stop() {
      await worker?.stop(config.drainTimeoutMs);
      clearInterval(flushing);
      await counter.flush();
    },
  };
}

interface WorkerParts {
  readonly counter: FigureCounter;
  readonly backpressure: Backpressure;
}

function openWorker(
  infrastructure: Infrastructure,
  { directory, seals, contents }: PartnerParts,
  { lease, listener, callbackCas, onAttempt }: DeliveryOptions,
  { counter, backpressure }: WorkerParts,
) {
  const { database, config, log, metrics, partnerMetrics, tracing, sandbox, alerting, alerts, egressProxy } =
    infrastructure;
  const { slotsMax, bytesInFlightMax, attemptTimeoutMs, connectTimeoutMs } = config;
  const { closing, watch } = infrastructure;
  const transport = new Transport({
    clock: systemClock,
    resolve: createResolver(),
    sandbox,
    extraCas: callbackCas,
    proxy: egressProxy,
    connectTimeoutMs,
    onCertificateEnding: (partnerId, origin, endsAt) => {
      const detail = { certificate: "the partner's", origin, endsAt: endsAt.toISOString() };
      void alerts.record({ kind: "certificate_ending", partnerId, subjectId: null, detail });
    },
  });
  closing.push(() => transport.abort());
  const { onFlush } = watch("outcomes");
  const store = new PostgresDeliveries(database.homes, {
    alerting,
    onFlush: (rows, durationMs, waitingRows) => {
      onFlush?.(rows, durationMs, waitingRows);
      backpressure.recorded(rows);
    },
  });
  const deliveryPartners = new DeliveryPartners({
    directory,
    clock: systemClock,
    onUnreadable: (partnerId, error) => {
      log.error({ err: error, partner: partnerId }, "a partner's keys cannot be opened: its notifications wait");
      const detail = { detail: "Its settings or keys cannot be read; its notifications wait." };
      void alerts.record({ kind: "partner_unreadable", partnerId, subjectId: null, detail });
    },
  });
  const worker = new DeliveryWorker({
    store,
    shards: postgresShards(database.engine, () => listener.connection()),
    circuits: postgresCircuits(database.homes),
    homes: database.homes.all.length,
    lease,
    partners: deliveryPartners,
    attempt: attemptMaker({
      transport,
      seals,
      contents,
      reqIdOf: readReqId(database.homes),
      clock: systemClock,
      log,
      attemptTimeoutMs,
      random: Math.random,
    }),
    clock: systemClock,
    timers: systemTimers,
    inNextTurn: (work) => void setImmediate(work),
    random: Math.random,
    slotsMax,
    bytesInFlightMax,
    abort: () => transport.abort(),
    ...(egressProxy && { egressWaitMs: () => egressProxy.waitMs() }),
    onAttempted: (delivery, attempted) => {
      countAttempt(metrics, partnerMetrics, delivery, attempted);
      counter.count(delivery, attempted);
      tracing?.traces.attempted(delivery, attempted);
      onAttempt?.(delivery, attempted);
    },
    onOverdue: (partnerId, parked) => {
      metrics.notificationsParked.inc({ reason: "endpoint" }, parked);
      counter.parked(partnerId, parked, systemClock.nowMs());
    },
    onFitness: () => {
      if (!worker.isFit) log.error({}, "delivery's statements fail: other instances send for its partners");
      lease.kindChanged();
    },
    onFault: (delivery) => void alerts.record(faultOf(delivery)),
    onTrouble: (message, error) => log.warn({ err: error }, message),
  });
  deliveryPartners.start((partnerId) => worker.partnerChanged(partnerId));
  return worker;
}

/** Passes durable notifications of the ledger to delivery, without reading the database, and to waiting pulls. */
export function deliveryNotifier(
  hints: Pick<Hints, "offer" | "due">,
  arrivals: Pick<LongPolls, "notify">,
  traces?: Pick<Traces, "notified">,
): Notifier {
  return {
    notify(notification, createdAtMs, begunMs) {
      traces?.notified(notification);
      const { partnerId, queue, originalId, originalExternalId } = notification;
      // Its original is looked up when it is read from the database.
      if (originalId === null && originalExternalId !== null) hints.due({ partnerId, queue });
      else hints.offer(firstDelivery(notification, createdAtMs, systemClock.nowMs()), begunMs);
      arrivals.notify(partnerId);
    },
  };
}

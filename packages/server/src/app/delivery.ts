import { systemClock } from "../clock.ts";
import { attempting } from "../delivery/attempt.ts";
import { afterSighting } from "../delivery/breaker.ts";
import { type Attempted, Dispatcher } from "../delivery/dispatcher.ts";
import { SealingWorker } from "../delivery/sending/sealing-worker.ts";
import { SendingThread } from "../delivery/sending/sending-thread.ts";
import { SendingThreads } from "../delivery/sending/sending-threads.ts";
import type { Claimed } from "../delivery/store.ts";
import type { Lease } from "../instance.ts";
import { PostgresDeliveries } from "../store/deliveries.ts";
import { PostgresEndpoints } from "../store/endpoints.ts";
import type { Ground } from "./ground.ts";
import { countAttempt } from "./observation.ts";
import type { PartnerParts } from "./partners.ts";

export interface DeliveryOptions {
  readonly lease: Lease;
  /** PEM certificates that callbacks may use beside the well-known authorities. */
  readonly callbackCas: readonly string[];
  /** Told of each attempt: the sandbox shows them. */
  readonly onAttempt?: (claimed: Claimed, attempted: Attempted) => void;
}

export type DeliveryParts = ReturnType<typeof wireDelivery>;

/** A probe's delivery is its own for an attempt's whole time, and a little more. */
const probeGraceMs = 5_000;

/** How notifications leave. */
export function wireDelivery(ground: Ground, { directory, seals }: PartnerParts, options: DeliveryOptions) {
  const { database, config, log, metrics, sandbox, alerting, closing, watch } = ground;
  const sendingThread = () =>
    new SendingThread({ log, sandbox, extraCas: options.callbackCas, connectTimeoutMs: config.connectTimeoutMs });
  const sender = new SendingThreads(Array.from({ length: config.sendingThreads }, sendingThread));
  closing.push(() => sender.close());
  const sealingWorker = new SealingWorker({
    log,
    onHanded: (waitedMs) => metrics.sealingWaitSeconds.observe(waitedMs / 1_000),
  });
  closing.push(() => sealingWorker.stop());
  const deliveries = new PostgresDeliveries(database.engine, {
    alerting,
    breaker: (standing, sighting) => afterSighting(standing, sighting, Math.random()),
    ...watch("outcomes"),
    onSetAside: () => dispatcher.wake(),
  });
  const endpoints = new PostgresEndpoints(database, { alerting });
  const dispatcher: Dispatcher = new Dispatcher({
    store: deliveries,
    endpoints,
    clock: systemClock,
    directory,
    lease: options.lease,
    attempt: attempting({
      sender,
      seals,
      sealingWorker,
      lease: options.lease,
      clock: systemClock,
      log,
      attemptTimeoutMs: config.attemptTimeoutMs,
      random: Math.random,
    }),
    log,
    slotsMax: config.slotsMax,
    bytesInFlightMax: config.bytesInFlightMax,
    drainTimeoutMs: config.drainTimeoutMs,
    probeLeaseMs: config.attemptTimeoutMs + probeGraceMs,
    onOutcome: (claimed, attempted) => {
      countAttempt(metrics, claimed, attempted);
      options.onAttempt?.(claimed, attempted);
    },
    onNoSeat: (limit) => metrics.seatsRefused.inc({ limit }),
    onOverdue: (parked) => metrics.notificationsParked.inc({ reason: "endpoint" }, parked),
  });
  metrics.onRead(async () => {
    metrics.sealingWaiting.set(sealingWorker.standing.waitingChars);
    for (const [at, thread] of sender.all.entries()) {
      metrics.threadBusySeconds.set({ thread: `sending ${at + 1}` }, thread.busyMs / 1_000);
    }
    metrics.threadBusySeconds.set({ thread: "main" }, performance.eventLoopUtilization().active / 1_000);
  });
  return { sender, sealingWorker, deliveries, endpoints, dispatcher };
}

import { parentPort, workerData } from "node:worker_threads";
import { systemClock, systemTimers } from "../clock.ts";
import { attemptMaker } from "../delivery/attempt.ts";
import { SealingWorker } from "../delivery/sending/sealing-worker.ts";
import { AttemptFeed } from "../delivery/thread/attempt-feed.ts";
import type { FromWorker, LogLine, ToWorker } from "../delivery/thread/messages.ts";
import { Outbox } from "../delivery/thread/outbox.ts";
import { RemotePartners } from "../delivery/thread/remote-partners.ts";
import { createResolver } from "../delivery/transport/resolve.ts";
import { Transport } from "../delivery/transport/transport.ts";
import { DeliveryWorker } from "../delivery/worker.ts";
import type { NewEvent } from "../events.ts";
import { Lease } from "../leases/lease.ts";
import { SealBudget } from "../partners/seal-budget.ts";
import type { HomeAddress } from "../store/database/citus.ts";
import { openDatabase } from "../store/database/database.ts";
import { PostgresListener } from "../store/database/listener.ts";
import { PostgresCircuits } from "../store/deliveries/circuits.ts";
import { PostgresDeliveries } from "../store/deliveries/deliveries.ts";
import { PostgresShards } from "../store/deliveries/shards.ts";
import { PostgresEvents } from "../store/events.ts";
import { PostgresLeases } from "../store/leases.ts";
import { PostgresPartners } from "../store/partners/partners.ts";

/** The data of a delivery worker's thread. It has neither an environment nor the master key. */
export interface DeliveryThreadData {
  readonly databaseUrl: string;
  /** With Citus, the homes. */
  readonly homes: readonly HomeAddress[] | undefined;
  readonly databaseConnections: number;
  /** Only the sandbox calls http:// and loopback addresses. */
  readonly sandbox: boolean;
  /** PEM certificates that are trusted for callbacks in addition to the well-known CAs. */
  readonly callbackCas: readonly string[];
  readonly connectTimeoutMs: number;
  readonly attemptTimeoutMs: number;
  readonly slotsMax: number;
  readonly bytesInFlightMax: number;
  /** Whether alerts are sent. */
  readonly alerting: boolean;
}

const statusEveryMs = 1_000;

// The entry of the thread. It does nothing when another thread imports it.
if (parentPort !== null) await run(parentPort, workerData as DeliveryThreadData);

async function run(main: NonNullable<typeof parentPort>, data: DeliveryThreadData): Promise<void> {
  const outbox = new Outbox<FromWorker>(
    () => ({
      taken: 0,
      takenBytes: 0,
      heard: 0,
      asks: [],
      behind: [],
      attempted: [],
      commits: [],
      parkedOverdue: 0,
      log: [],
      slots: 0,
    }),
    (message) => {
      message.slots = worker.status.slots;
      main.postMessage(message);
    },
  );
  const write = (level: LogLine["level"], fields: LogLine["fields"], message: string) => {
    outbox.message.log.push({ level, fields: loggable(fields), message });
  };
  const log = {
    warn: (fields: object, message: string) => write("warn", fields as LogLine["fields"], message),
    error: (fields: object, message: string) => write("error", fields as LogLine["fields"], message),
  };
  const trouble = (message: string, error: unknown) => log.warn({ err: error }, message);
  const { databaseUrl, homes, databaseConnections: connectionsMax, alerting, attemptTimeoutMs } = data;
  const database = openDatabase(databaseUrl, {
    homes,
    connectionsMax,
    onIdleError: (error) => trouble("a connection to the database broke", error),
  });
  const beats = new PostgresListener({
    connect: () => database.connectDirectly(),
    channels: [],
    onNotify: () => undefined,
    onTrouble: (error) => trouble("the connection of the lease broke", error),
  });
  const lease = new Lease({
    kind: "delivery",
    store: new PostgresLeases(() => beats.connection()),
    clock: systemClock,
    timers: systemTimers,
    onTrouble: (error) => trouble("the lease could not be renewed", error),
    isFit: () => worker.ownership.isFit,
    onLost: () => {
      log.warn({}, "the lease is lost: others own the shards now");
      worker.leaseLost();
    },
    onHeld: (id) => {
      outbox.message.leaseId = id;
    },
  });
  const events = new PostgresEvents(database.homes);
  const record = (event: NewEvent) => {
    events.record([event], alerting).catch((error: unknown) => trouble("an event could not be recorded", error));
  };
  const seals = new SealBudget(new PostgresPartners(database), ({ partnerId, keyId, seals: count }) => {
    record({ kind: "key_limit", partnerId, subjectId: keyId, detail: { seals: count } });
  });
  const sealingWorker = new SealingWorker({ log });
  const transport = new Transport({
    clock: systemClock,
    resolve: createResolver(),
    sandbox: data.sandbox,
    extraCas: data.callbackCas,
    connectTimeoutMs: data.connectTimeoutMs,
    onCertificateEnding: (partnerId, origin, endsAt) => {
      const detail = { certificate: "the partner's", origin, endsAt: endsAt.toISOString() };
      record({ kind: "certificate_ending", partnerId, subjectId: null, detail });
    },
  });
  const notes = new AttemptFeed(
    (note) => outbox.message.attempted.push(note),
    (attempts) => log.warn({ attempts }, "metrics lack these attempts: the main thread was blocked"),
  );
  const partners = new RemotePartners(systemClock, (id, isKnown) => outbox.message.asks.push([id, isKnown]));
  const worker: DeliveryWorker = new DeliveryWorker({
    store: new PostgresDeliveries(database.homes, {
      alerting,
      onFlush: (rows, durationMs, waitingRows) => outbox.message.commits.push([rows, durationMs, waitingRows]),
    }),
    shards: new PostgresShards(database.engine),
    circuits: new PostgresCircuits(database.homes),
    homes: database.homes.all.length,
    lease,
    partners,
    attempt: attemptMaker({
      transport,
      seals,
      makeEnvelope: sealingWorker.make,
      clock: systemClock,
      log,
      attemptTimeoutMs,
      random: Math.random,
    }),
    clock: systemClock,
    timers: systemTimers,
    inNextTurn: (work) => void setImmediate(work),
    random: Math.random,
    slotsMax: data.slotsMax,
    bytesInFlightMax: data.bytesInFlightMax,
    attemptTimeoutMs,
    onAttempted: (delivery, attempted) => {
      const { partnerId, id, transactionId, command, attemptsBefore, attemptsMade, scheduleStartMs } = delivery;
      const reported = { partnerId, id, transactionId, command, attemptsBefore, attemptsMade, scheduleStartMs };
      notes.add([reported, attempted]);
    },
    onOverdue: (parked) => {
      outbox.message.parkedOverdue += parked;
    },
    onBehind: (key, isBehind) => outbox.message.behind.push([key, isBehind]),
    onShards: (shards) => {
      outbox.message.shards = shards;
    },
    onTrouble: trouble,
  });
  const status = setInterval(() => {
    const { bytes, rows, unrecorded } = worker.status;
    outbox.message.status = {
      bytes,
      rows,
      unrecorded,
      leaseMs: lease.remainingMs(),
      busyMs: performance.eventLoopUtilization().active,
      sealingWaiting: sealingWorker.status.waitingChars,
    };
  }, statusEveryMs);

  let isStopping = false;
  const stop = async (withinMs: number) => {
    isStopping = true;
    const left = await worker.stop(withinMs);
    clearInterval(status);
    await lease.stop();
    transport.close();
    await sealingWorker.stop();
    await beats.stop();
    await database.close();
    outbox.message.stopped = left;
    outbox.flush();
    main.close();
  };
  main.on("message", (message: ToWorker) => {
    outbox.message.taken += message.deliveries.length;
    outbox.message.takenBytes += message.deliveries.reduce((sum, { bytes }) => sum + bytes, 0);
    outbox.message.heard += message.hints.length;
    notes.noted(message.noted);
    for (const answer of message.partners) if (partners.received(answer)) worker.partnerChanged(answer.id);
    worker.offer(message.deliveries, message.begunMs);
    worker.wake(message.hints);
    if (message.news.includes("circuits")) worker.circuitsChanged();
    if (message.news.includes("shards") || message.news.includes("due")) worker.tick();
    if (message.stopWithinMs !== undefined) void stop(message.stopWithinMs);
  });
  await startLease();
  if (!isStopping) worker.start();

  /** The database may be unavailable when the thread begins. */
  async function startLease(): Promise<void> {
    while (!isStopping) {
      try {
        return await lease.start();
      } catch (error) {
        trouble("no lease could be obtained", error);
        await new Promise((resolve) => setTimeout(resolve, statusEveryMs));
      }
    }
  }
}

/** An error crosses to the other thread as its class, message and stack. */
function loggable(fields: LogLine["fields"]): LogLine["fields"] {
  const error = fields["err"];
  if (!(error instanceof Error)) return fields;
  const { name, message, stack } = error;
  return { ...fields, err: { type: name, message, stack } };
}

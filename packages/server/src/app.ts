import { randomUUID } from "node:crypto";
import type { Acquirer } from "./acquirer/acquirer.ts";
import { alertTarget } from "./app/alert-target.ts";
import { watchBacklog } from "./app/backlog-watch.ts";
import { handOver } from "./app/hand-over.ts";
import { health } from "./app/health.ts";
import { maintainHistory } from "./app/history.ts";
import { listenOn } from "./app/listen.ts";
import { countAttempt, observeStanding } from "./app/observation.ts";
import { standingOf } from "./app/standing.ts";
import { systemClock } from "./clock.ts";
import { cardNumberProblem } from "./commands/card-number.ts";
import type { Config } from "./config.ts";
import { Alerts } from "./delivery/alerts.ts";
import { attempting } from "./delivery/attempt.ts";
import { afterSighting } from "./delivery/breaker.ts";
import { type Attempted, Dispatcher } from "./delivery/dispatcher.ts";
import { EndpointDesk } from "./delivery/endpoints-desk.ts";
import { Notifications } from "./delivery/notifications.ts";
import { sealing } from "./delivery/notifications-pull.ts";
import { SealingWorker } from "./delivery/sealing-worker.ts";
import type { Claimed } from "./delivery/store.ts";
import { Transport } from "./delivery/transport.ts";
import { createResolver } from "./delivery/transport-resolve.ts";
import { createHttp } from "./http/server.ts";
import { readId } from "./ids.ts";
import { InstanceLease } from "./instance.ts";
import { Completer } from "./ledger/completer.ts";
import { Ledger } from "./ledger/ledger.ts";
import { Reports } from "./ledger/reports.ts";
import { Reverser } from "./ledger/reverser.ts";
import { Settler } from "./ledger/settler.ts";
import type { Log } from "./log.ts";
import { createMetrics, type Metrics } from "./metrics.ts";
import { CachedPartners } from "./partners/directory.ts";
import { type MasterKey, requireFittingMasterKey } from "./partners/master-key.ts";
import type { PartnerDirectory } from "./partners/partner.ts";
import { PartnerRegistry } from "./partners/registry.ts";
import { SealBudget } from "./partners/seal-budget.ts";
import { defaultSettings } from "./partners/settings.ts";
import { PostgresCompletions } from "./store/completions.ts";
import { openDatabase } from "./store/database.ts";
import { PostgresDeliveries } from "./store/deliveries.ts";
import { PostgresEndpoints } from "./store/endpoints.ts";
import { PostgresEvents } from "./store/events.ts";
import { PostgresInstances } from "./store/instances.ts";
import { LedgerRetention } from "./store/ledger-retention.ts";
import { Listener } from "./store/listener.ts";
import { migrate } from "./store/migrate.ts";
import { PostgresNotifications } from "./store/notifications.ts";
import { Partitions } from "./store/partitions.ts";
import { PostgresPartners } from "./store/partners.ts";
import { PostgresReversals } from "./store/reversals.ts";
import { PostgresSettlements } from "./store/settlements.ts";
import { PostgresTerminals } from "./store/terminals.ts";
import { PostgresTransactions } from "./store/transactions.ts";

export interface ServiceOptions {
  readonly config: Config;
  readonly databaseUrl: string;
  readonly masterKey: MasterKey;
  readonly acquirer: Acquirer;
  /** What /readyz says of it. */
  readonly acquirerName: string;
  readonly log: Log;
  /** Answers local callers only, and allows http:// and loopback callbacks. */
  readonly sandbox: boolean;
  /** Addresses to listen on, each with the configured port; port 0 takes any free one. */
  readonly hosts: readonly string[];
  /** PEM certificates that callbacks may use beside the well-known authorities. */
  readonly callbackCas: readonly string[];
  /** Told of each attempt: the sandbox shows them. */
  readonly onAttempt?: (claimed: Claimed, attempted: Attempted) => void;
}

export interface Service {
  /** Takes callers from now on. @returns where, such as http://127.0.0.1:7420 */
  listen(): Promise<readonly string[]>;
  readonly ledger: Ledger;
  readonly reports: Reports;
  readonly directory: PartnerDirectory;
  readonly registry: PartnerRegistry;
  readonly metrics: Metrics;
  /** POSTs in flight now. */
  inFlight(): number;
  /**
   * Takes no new work, lets what is in flight finish (bounded), gives back the rest, and closes. May be called again.
   *
   * @returns how many notifications are pending in the database; undefined when it could not be asked
   */
  stop(): Promise<number | undefined>;
}

const takeOverEveryMs = 2_000;
const maintainEveryMs = 3_600_000;
const watchBacklogEveryMs = 60_000;
const commandsMax = 4_000;
/** Of a stop, what the ledger may take; delivery has the drain's own time. */
const ledgerStopMs = 10_000;

/**
 * Builds every part and hands it what it needs: the only wiring. Rejects, with everything closed again, when a part
 * cannot start.
 */
export async function startService(options: ServiceOptions): Promise<Service> {
  const { config, log, masterKey, sandbox } = options;
  const closing: (() => Promise<unknown> | unknown)[] = [];
  try {
    await migrate(options.databaseUrl);
    const metrics = createMetrics();
    closing.push(() => metrics.close());
    const database = openDatabase(options.databaseUrl, {
      connectionsMax: config.databaseConnections,
      onIdleError: (error) => log.warn({ err: error }, "a connection to the database broke"),
    });
    closing.push(() => database.close());
    const warn = (text: string) => (error: unknown) => log.warn({ err: error }, text);
    const onFlush = (batch: string) => (rows: number, durationMs: number) => {
      metrics.groupCommitRows.observe({ batch }, rows);
      metrics.groupCommitSeconds.observe({ batch }, durationMs / 1_000);
    };

    const partnerStore = new PostgresPartners(database.pool);
    await requireFittingMasterKey(masterKey, partnerStore);
    const partitions = new Partitions({ pool: database.pool, clock: systemClock, historyDays: config.historyDays });

    const target = alertTarget(config);
    const eventStore = new PostgresEvents(database.pool);
    const alerts = new Alerts({
      store: eventStore,
      target,
      clock: systemClock,
      log,
      onRecorded: (kind) => metrics.alerts.inc({ kind }),
    });
    closing.push(() => alerts.stop());
    await maintainHistory(partitions, alerts, log);

    const terminals = new PostgresTerminals(database.pool);
    const defaults = { ...defaultSettings, retry: config.retrySeconds };
    const directory = new CachedPartners({
      store: partnerStore,
      masterKey,
      defaults,
      clock: systemClock,
      onError: warn("partners could not be refreshed"),
    });
    closing.push(() => directory.stop());
    const registry = new PartnerRegistry({
      partners: partnerStore,
      terminals,
      masterKey,
      defaults,
      rules: { sandbox },
      cardNumberProblem,
      changed: (id) => directory.invalidate(id),
    });
    const seals = new SealBudget(partnerStore, ({ partnerId, keyId, seals: count }) =>
      alerts.record({ kind: "key_limit", partnerId, subjectId: keyId, detail: { seals: count } }),
    );

    const listener = new Listener({
      connect: () => database.connectDirectly(),
      channels: ["paybell_due", "paybell_partner", "paybell_endpoint"],
      onNotify: (channel, payload) => {
        if (channel === "paybell_due") dispatcher.wake();
        if (channel === "paybell_endpoint") dispatcher.endpointsChanged();
        const partnerId = channel === "paybell_partner" ? readId<"partner">(payload) : undefined;
        if (partnerId) directory.invalidate(partnerId).catch(warn("a partner could not be refreshed"));
      },
      onTrouble: warn("the database cannot be listened to"),
    });
    closing.push(() => listener.stop());
    const lease = new InstanceLease(
      new PostgresInstances(() => listener.connection()),
      systemClock,
      warn("the lease could not be renewed"),
    );

    const transport = new Transport({
      clock: systemClock,
      resolve: createResolver(),
      sandbox,
      extraCas: options.callbackCas,
      connectTimeoutMs: config.connectTimeoutMs,
    });
    closing.push(() => transport.close());
    const sealingWorker = new SealingWorker({ log });
    closing.push(() => sealingWorker.stop());
    const deliveries = new PostgresDeliveries(database.engine, {
      alerting: target !== undefined,
      breaker: (standing, sighting) => afterSighting(standing, sighting, Math.random()),
      onFlush: onFlush("outcomes"),
    });
    const standing = standingOf({ deliveries, partitions });
    const endpoints = new PostgresEndpoints(database, { alerting: target !== undefined });
    const dispatcher = new Dispatcher({
      store: deliveries,
      endpoints,
      clock: systemClock,
      directory,
      lease,
      attempt: attempting({
        transport,
        seals,
        makeEnvelope: sealingWorker.make,
        clock: systemClock,
        log,
        attemptTimeoutMs: config.attemptTimeoutMs,
        random: Math.random,
      }),
      log,
      slotsMax: config.slotsMax,
      bytesInFlightMax: config.bytesInFlightMax,
      drainTimeoutMs: config.drainTimeoutMs,
      probeLeaseMs: config.attemptTimeoutMs + 5_000,
      onOutcome: (claimed, attempted) => {
        countAttempt(metrics, claimed, attempted);
        options.onAttempt?.(claimed, attempted);
      },
      onOverdue: (parked) => metrics.notificationsParked.inc({ reason: "endpoint" }, parked),
    });

    const notifier = handOver(dispatcher);
    const transactions = new PostgresTransactions(database, { onFlush: onFlush("inits") });
    const completions = new PostgresCompletions(database.engine, {
      onFlush: onFlush("completions"),
      onDoubtfulReport: ({ notification }) => {
        if (notification?.lease) dispatcher.disown({ ...notification, claimNo: 1 });
      },
    });
    const isRegisteredDevice = terminals.isRegisteredDevice.bind(terminals);
    const completer = new Completer({ completions, notifier, directory, events: alerts, metrics });
    const reversals = new PostgresReversals(database.engine);
    const { acquirer } = options;
    const { acquirerTimeoutMs } = config;
    const shared = { transactions, completer, acquirer, log, acquirerTimeoutMs };
    const reverser = new Reverser({ ...shared, reversals });
    const settler = new Settler({ ...shared, settlements: new PostgresSettlements(database.engine) });
    const ledger = new Ledger({
      ...shared,
      reversals,
      reverser,
      settler,
      lease,
      clock: systemClock,
      metrics,
      bodyKey: masterKey.derive("request bodies"),
      preAuthDays: config.preAuthDays,
      commandsMax,
      sandbox,
      isRegisteredDevice,
    });
    const reports = new Reports({
      transactions,
      completions,
      directory,
      notifier,
      events: alerts,
      metrics,
      sandbox,
      isRegisteredDevice,
    });
    const notifications = new Notifications({
      store: new PostgresNotifications(database.pool, partitions),
      seal: sealing(seals, systemClock, sealingWorker.make),
      clock: systemClock,
      newReqId: randomUUID,
      onDue: (partnerId) => dispatcher.bornDue(partnerId),
    });

    const retention = new LedgerRetention({
      engine: database.engine,
      clock: systemClock,
      ledgerDays: config.ledgerDays,
      onDropped: (table, rows) => metrics.ledgerDropped.inc({ table }, rows),
    });
    closing.push(() => retention.stop());
    const dropOld = () => void retention.run().catch(warn("what the ledger holds past retention could not be dropped"));

    const http = createHttp({
      config,
      log,
      metrics,
      ledger,
      reports,
      registry,
      directory,
      notifications,
      endpoints: new EndpointDesk(endpoints, () => dispatcher.endpointsChanged()),
      isRegisteredDevice,
      refusesToken: (token) => acquirer.refusesToken(token),
      health: () => health({ standing, lease, acquirer: options.acquirerName }),
      clock: systemClock,
      sandbox,
    });
    closing.push(() => http.close());

    await lease.start();
    directory.start();
    dispatcher.start();
    reverser.start();
    settler.start();
    alerts.start();
    const timers = [
      setInterval(() => {
        ledger.takeOver((id) => directory.find(id)).catch(warn("commands in doubt could not be taken over"));
      }, takeOverEveryMs),
      setInterval(() => {
        maintainHistory(partitions, alerts, log).catch(warn("the days of history could not be maintained"));
        dropOld();
      }, maintainEveryMs),
      setInterval(() => {
        watchBacklog({
          standing: () => deliveries.standing(),
          wasToldSince: (kind, sinceMs) => eventStore.wasToldSince(kind, sinceMs),
          events: alerts,
          alertAfterS: config.oldestPendingAlertS,
        }).catch(warn("the oldest pending notification could not be looked at"));
      }, watchBacklogEveryMs),
    ];
    dropOld();
    observeStanding(metrics, { dispatcher, lease, standing });

    let stopped: Promise<number | undefined> | undefined;
    const stop = async () => {
      // No new commands: whoever calls now is told so. What runs ends, what is in flight is answered, then the lease
      // goes.
      const closed = http.close();
      for (const timer of timers) clearInterval(timer);
      let pending: number | undefined;
      await inOrder(warn("a part could not be stopped"), [
        () => ledger.stop(ledgerStopMs),
        // Whoever still waits for the acquirer is told that no answer comes: it is repeated by whoever is there then.
        () => acquirer.close(),
        () => Promise.all([reverser.stop(), settler.stop()]),
        () => dispatcher.stop(),
        () => closed,
        () => alerts.stop(),
        () => retention.stop(),
        async () => {
          pending = (await deliveries.standing()).count;
        },
        () => lease.stop(),
        () => directory.stop(),
        () => sealingWorker.stop(),
        () => transport.close(),
        () => listener.stop(),
        () => database.close(),
        () => metrics.close(),
      ]);
      return pending;
    };
    return {
      listen: () => listenOn(http, options.hosts, config.port),
      ledger,
      reports,
      directory,
      registry,
      metrics,
      inFlight: () => dispatcher.slots.taken,
      stop: () => {
        stopped ??= stop();
        return stopped;
      },
    };
  } catch (error) {
    for (const close of closing.reverse()) await Promise.resolve(close()).catch(() => undefined);
    throw error;
  }
}

/** Each step after the one before it has ended, however it did: one that fails keeps none of the others from it. */
async function inOrder(onTrouble: (error: unknown) => void, steps: readonly (() => unknown)[]): Promise<void> {
  for (const step of steps) {
    try {
      await step();
    } catch (error) {
      onTrouble(error);
    }
  }
}

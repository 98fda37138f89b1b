import { randomUUID } from "node:crypto";
import type { Acquirer } from "./acquirer/acquirer.ts";
import { wireDelivery } from "./app/delivery.ts";
import { layGround } from "./app/ground.ts";
import { health } from "./app/health.ts";
import { maintainHistory } from "./app/history.ts";
import { wireLedger } from "./app/ledger.ts";
import { listenOn } from "./app/listen.ts";
import { observeStanding } from "./app/observation.ts";
import { wirePartners } from "./app/partners.ts";
import { standingOf } from "./app/standing.ts";
import { keepUp } from "./app/upkeep.ts";
import { systemClock } from "./clock.ts";
import type { Config } from "./config.ts";
import { Arrivals } from "./delivery/arrivals.ts";
import type { Attempted } from "./delivery/dispatcher.ts";
import { EndpointDesk } from "./delivery/endpoints-desk.ts";
import { Notifications } from "./delivery/notifications.ts";
import { sealing } from "./delivery/notifications-pull.ts";
import type { Claimed } from "./delivery/store.ts";
import { createHttp } from "./http/server.ts";
import { readId } from "./ids.ts";
import { InstanceLease } from "./instance.ts";
import type { Ledger } from "./ledger/ledger.ts";
import type { Reports } from "./ledger/reports.ts";
import type { ReverserParts } from "./ledger/reverser.ts";
import type { Log } from "./log.ts";
import type { Metrics } from "./metrics.ts";
import type { MasterKey } from "./partners/master-key.ts";
import type { PartnerDirectory } from "./partners/partner.ts";
import type { PartnerRegistry } from "./partners/registry.ts";
import { PostgresInstances } from "./store/instances.ts";
import { Listener } from "./store/listener.ts";
import { migrate } from "./store/migrate.ts";
import { PostgresNotifications } from "./store/notifications.ts";
import { Partitions } from "./store/partitions.ts";
import { troubleOf } from "./store/retryable.ts";

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
  /** Told of each Reversal that the acquirer has answered. */
  readonly onReversalEnded?: ReverserParts["onEnded"];
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

/** Of a stop, what the ledger may take; delivery has the drain's own time. */
const ledgerStopMs = 10_000;
/** Of all connections, how many may be held by who waits for a notification: the others are for what is done. */
const waitingShare = 1 / 4;

/**
 * Builds every part and hands it what it needs: the only wiring. Rejects, with everything closed again, when a part
 * cannot start.
 */
export async function startService(options: ServiceOptions): Promise<Service> {
  const { config, log, masterKey, sandbox, acquirer } = options;
  const closing: (() => Promise<unknown> | unknown)[] = [];
  try {
    await migrate(options.databaseUrl);
    const ground = layGround(options, closing);
    const { database, metrics, alerts, warn } = ground;
    const partners = await wirePartners(ground, masterKey);
    const { directory, registry, isRegisteredDevice } = partners;
    const partitions = new Partitions({ pool: database.pool, clock: systemClock, historyDays: config.historyDays });
    await maintainHistory(partitions, alerts, log);

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
    const delivery = wireDelivery(ground, partners, { ...options, lease });
    const { dispatcher, deliveries, endpoints, sealingWorker, sender } = delivery;
    const notificationStore = new PostgresNotifications(database.pool, partitions);
    const arrivals = new Arrivals({
      store: notificationStore,
      waitingMax: Math.floor(config.connectionsMax * waitingShare),
    });
    const { ledger, reports, reverser, settler, comparer } = wireLedger(ground, partners, delivery, {
      masterKey,
      acquirer,
      lease,
      arrivals,
      onReversalEnded: options.onReversalEnded,
    });
    const standing = standingOf({ deliveries, partitions });
    const http = createHttp({
      config,
      log,
      metrics,
      ledger,
      reports,
      registry,
      directory,
      notifications: new Notifications({
        store: notificationStore,
        arrivals,
        seal: sealing(partners.seals, systemClock, sealingWorker.make),
        clock: systemClock,
        newReqId: randomUUID,
        onDue: (partnerId) => dispatcher.bornDue(partnerId),
      }),
      endWaits: () => arrivals.stop(),
      endpoints: new EndpointDesk(endpoints, () => dispatcher.endpointsChanged()),
      isRegisteredDevice,
      refusesToken: (token) => acquirer.refusesToken(token),
      isUnavailable: (error) => ["connection", "conflict"].includes(troubleOf(error)),
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
    comparer.start();
    alerts.start();
    const endUpkeep = keepUp(ground, { ledger, directory, deliveries, partitions });
    observeStanding(metrics, { dispatcher, arrivals, database, lease, standing });

    const stop = async () => {
      // No new commands: whoever calls now is told so. What runs ends, what is in flight is answered, then the lease
      // goes.
      const closed = http.close();
      const upkeepEnded = endUpkeep();
      let pending: number | undefined;
      await inOrder(warn("a part could not be stopped"), [
        () => ledger.stop(ledgerStopMs),
        // Whoever still waits for the acquirer is told that no answer comes: it is repeated by whoever is there then.
        () => acquirer.close(),
        () => Promise.all([reverser.stop(), settler.stop(), comparer.stop()]),
        () => dispatcher.stop(),
        () => closed,
        () => alerts.stop(),
        () => upkeepEnded,
        async () => {
          pending = (await deliveries.standing()).count;
        },
        () => lease.stop(),
        () => directory.stop(),
        () => sealingWorker.stop(),
        () => sender.close(),
        () => listener.stop(),
        () => database.close(),
        () => metrics.close(),
      ]);
      return pending;
    };
    let stopped: Promise<number | undefined> | undefined;
    return {
      listen: () => listenOn(http, options.hosts, config.port),
      ledger,
      reports,
      directory,
      registry,
      metrics,
      inFlight: () => dispatcher.admission.slots.taken,
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

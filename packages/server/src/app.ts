import { randomUUID } from "node:crypto";
import type { Acquirer } from "./acquirer/acquirer.ts";
import { type HostOptions, openAcquirers } from "./app/configured-acquirers.ts";
import { type OnAttempt, wireDelivery } from "./app/delivery.ts";
import { egressFetch } from "./app/egress.ts";
import { holdRestored, openInfrastructure } from "./app/infrastructure.ts";
import { openIntakes, wireClearing } from "./app/intake.ts";
import { wireLedger } from "./app/ledger.ts";
import { openListeners } from "./app/listeners.ts";
import { maintainPartitions, startMaintenance } from "./app/maintenance.ts";
import { wireFeed } from "./app/observation/feed.ts";
import {
  acquirerDetails,
  health,
  registeredHealth,
  serviceStatusOf,
  settingsHealth,
} from "./app/observation/health.ts";
import { observeStatus, watchLoop } from "./app/observation/observation.ts";
import { wirePartnerMessages, wirePartners } from "./app/partners.ts";
import { stopInOrder } from "./app/stop.ts";
import { Certifications } from "./callbacks/certifications.ts";
import { certificatesOf, endpointConnections } from "./callbacks/endpoint-connection.ts";
import { UrlChange } from "./callbacks/url-change.ts";
import { systemClock, systemTimers } from "./clock.ts";
import type { Config } from "./config/config.ts";
import { shownSettings } from "./config/config.ts";
import { createResolver } from "./delivery/transport/addresses.ts";
import type { HttpDependencies, ReceiverControl } from "./http/dependencies.ts";
import { readId } from "./ids.ts";
import { Lease } from "./leases/lease.ts";
import type { Ledger } from "./ledger/ledger.ts";
import type { Reports } from "./ledger/reports/reports.ts";
import type { ReverserParts } from "./ledger/reversals/reverser.ts";
import { Statements } from "./ledger/statements.ts";
import { LongPolls } from "./notifications/long-polls.ts";
import { Notifications } from "./notifications/notifications.ts";
import { Overviews } from "./notifications/overview.ts";
import { ProofSigner } from "./notifications/proof.ts";
import { sealing } from "./notifications/pull.ts";
import { Troubles } from "./notifications/trouble.ts";
import { OidcSignIn } from "./operators/oidc.ts";
import { EndedSessions, Operators } from "./operators/operators.ts";
import type { MasterKey } from "./partners/master-key.ts";
import type { PartnerDirectory } from "./partners/partner.ts";
import type { PartnerRegistry } from "./partners/registry.ts";
import { ownsTheSchema } from "./programs/check.ts";
import { PostgresListener } from "./store/database/client.ts";
import { findHomes } from "./store/database/homes.ts";
import { failureKindOf } from "./store/database/transaction.ts";
import { announceEndpoints } from "./store/deliveries/circuits.ts";
import { postgresCurrentCounts } from "./store/deliveries/pending-status.ts";
import { PostgresTrouble } from "./store/deliveries/trouble.ts";
import { postgresLeases } from "./store/leases.ts";
import { postgresHistory } from "./store/notifications/history.ts";
import { postgresNotifications } from "./store/notifications/notifications.ts";
import { postgresEndedSessions, postgresOperators } from "./store/operators/operators.ts";
import { mayChangeSchema } from "./store/schema/inspection.ts";
import { prepareSchema } from "./store/schema/migrate.ts";
import { Partitions } from "./store/schema/partitions.ts";
import { postgresStatements } from "./store/transactions/statements.ts";
import { readReqId } from "./store/transactions/transactions.ts";
import type { Log } from "./telemetry/log.ts";
import type { Metrics } from "./telemetry/metrics.ts";

/** `api`: commands and reports only. `delivery`: notifications only. */
export type InstanceRole = "all" | "api" | "delivery";

export interface ServiceOptions {
  readonly role?: InstanceRole;
  readonly config: Config;
  readonly databaseUrl: string;
  /** The same database as the role that owns the schema; without it, that is the role of `databaseUrl`. */
  readonly ownerUrl?: string | null;
  readonly masterKey: MasterKey;
  /** From the settings. Null: there is none, and its commands are refused. */
  readonly acquirer: Acquirer | HostOptions | null;
  /** Its name in /readyz. */
  readonly acquirerName: string;
  readonly log: Log;
  /** Answers local callers only, and allows http:// and loopback callbacks. */
  readonly sandbox: boolean;
  /** Addresses to listen on, each with the configured port; port 0 uses a free one. */
  readonly hosts: readonly string[];
  /** Addresses of the operators' own listener, with its own port; absent: one listener for everybody. */
  readonly operatorHosts?: readonly string[];
  /** PEM certificates that are trusted for callbacks in addition to the well-known CAs. */
  readonly callbackCas: readonly string[];
  /** Called for each attempt: the sandbox shows them. */
  readonly onAttempt?: OnAttempt;
  /** Called for each Reversal that the acquirer has answered. */
  readonly onReversalEnded?: ReverserParts["onEnded"];
  /** The sandbox's partner and receiver. */
  readonly receiverControl?: ReceiverControl;
}

export interface Service {
  /** Accepts callers from now on. @returns the URLs, such as http://127.0.0.1:7420 */
  listen(): Promise<readonly string[]>;
  /** The URLs for operators, once it listens: the same unless they have a listener of their own. */
  operatorUrls(): readonly string[];
  readonly ledger: Ledger;
  readonly reports: Reports;
  readonly directory: PartnerDirectory;
  readonly registry: PartnerRegistry;
  readonly metrics: Metrics;
  inFlight(): number;
  /**
   * Accepts no new work, lets work in flight finish (bounded), releases the rest, and closes. May be called repeatedly.
   * @returns the number of pending notifications in the database; undefined if it could not be read
   */
  stop(): Promise<number | undefined>;
}

/** Beyond the acquirer's timeout: for what is written after its answer. */
const drainGraceMs = 5_000;
/** The share of connections that waiting pulls may hold; the others are for requests that do work. */
const waitingShare = 1 / 4;

/**
 * Builds every part and passes its dependencies: the only wiring. Rejects, with everything closed again, if a part
 * cannot start.
 */
export async function startService(options: ServiceOptions): Promise<Service> {
  const { config, log, masterKey, sandbox, acquirer, role = "all" } = options;
  const runsCommands = role !== "delivery";
  const closing: (() => Promise<unknown> | unknown)[] = [];
  try {
    await prepareSchema({ ...options, auditDays: config.auditDays });
    const homes = await findHomes(options.databaseUrl);
    const infrastructure = await openInfrastructure({ ...options, homes }, closing);
    const { database, metrics, partnerMetrics, alerts, tracing, warn } = infrastructure;
    if (!sandbox && (await mayChangeSchema(database.pool))) log.warn({}, `${ownsTheSchema}: use two roles`);
    const partners = await wirePartners(infrastructure, masterKey);
    const { directory, registry, isRegisteredDevice } = partners;
    const { historyDays, proofDays } = config;
    const { contents } = partners;
    const partitions = new Partitions({ homes: database.homes, clock: systemClock, historyDays, proofDays, contents });
    await maintainPartitions(partitions, alerts, log);
    const restores = await holdRestored(database, alerts);

    const listener = new PostgresListener({
      connect: () => database.connectDirectly(),
      onTrouble: warn("the database cannot be listened to"),
    });
    closing.push(() => listener.stop());
    const lease = new Lease({
      store: postgresLeases(() => listener.connection()),
      clock: systemClock,
      timers: systemTimers,
      onTrouble: warn("the lease could not be renewed"),
    });
    // A host with one session would have it with an instance that may have no way to it.
    const ofSettings = runsCommands ? acquirer : null;
    const opened = { ofSettings, masterKey, sessionKey: partners.acquirerSessionKey, lease };
    const { acquirers, registry: acquirerRegistry, rpc } = await openAcquirers(infrastructure, opened);
    closing.push(() => acquirers.stop());
    const delivery = wireDelivery(infrastructure, partners, {
      sends: role !== "api",
      lease,
      listener,
      callbackCas: options.callbackCas,
      onAttempt: options.onAttempt,
    });
    let isStopping = false;
    let isListening = false;
    const { hints, status, endpoints, worker } = delivery;
    listener.on("paybell_due", (payload) => hints.received(payload));
    listener.on("paybell_endpoint", () => worker?.circuitsChanged());
    listener.on("paybell_shards", () => worker?.tick());
    listener.on("paybell_acquirers", () => void acquirers.refresh());
    listener.on("paybell_session", (payload) => rpc.received(payload));
    listener.on("paybell_partner", (payload) => {
      const partnerId = readId<"partner">(payload);
      if (partnerId === undefined) return;
      partnerMetrics.know(partnerId);
      directory.invalidate(partnerId).catch(warn("a partner could not be refreshed"));
    });
    const notificationStore = postgresNotifications(database, partitions);
    const arrivals = new LongPolls({
      store: notificationStore,
      waitingMax: Math.floor(config.connectionsMax * waitingShare),
    });
    const { ledger, reports, workers, dueWatch, money, sweepCards, unmatched } = wireLedger(
      infrastructure,
      partners,
      delivery,
      { acquirers, lease, arrivals, onReversalEnded: options.onReversalEnded },
    );
    const intake = openIntakes(infrastructure, { reports, directory, sandbox, isRegisteredDevice });
    const proofs = new ProofSigner(partners.proofKey);
    const counts = postgresCurrentCounts(database.homes);
    const serviceStatus = serviceStatusOf({ status, counts, partitions, metricsPartners: config.metricsPartners });
    const callbacks = {
      connect: endpointConnections({
        resolve: createResolver(),
        connectTimeoutMs: config.connectTimeoutMs,
        sandbox,
        extraCas: options.callbackCas,
        proxy: infrastructure.egressProxy,
      }),
      seals: partners.seals,
      rules: { sandbox },
      clock: systemClock,
    };
    if (config.keyProposalMinutes > 0) await partners.proposals.beginRule(config.keyProposalMinutes);
    const notifications = new Notifications({
      store: notificationStore,
      arrivals,
      proofs,
      seal: sealing(partners.seals, partners.contents, systemClock, readReqId(database.homes)),
      contents: partners.contents,
      clock: systemClock,
      findPartner: (id) => directory.findReadable(id),
      newReqId: randomUUID,
      onDue(partnerId) {
        hints.due({ partnerId });
        announceEndpoints(database.pool).catch(warn("a probe could not be announced"));
      },
    });
    const { clearing, clearingIntake } = wireClearing(infrastructure, {
      ofSettings: acquirer,
      registry: acquirerRegistry,
      notifications,
    });
    const troubles = new Troubles({
      store: new PostgresTrouble(database.homes),
      statuses: (keys) => notificationStore.statuses(keys),
      findPartner: (id) => directory.findReadable(id),
    });
    const partnerMessages = wirePartnerMessages(infrastructure, {
      troubles,
      stateOf: async (partnerId, id) => (await notificationStore.statuses([{ partnerId, id }]))[0]?.state,
      findPartner: (id) => directory.findReadable(id),
      connect: callbacks.connect,
    });
    const feed = wireFeed(infrastructure, partners.auditStore);
    const httpParts: HttpDependencies = {
      config,
      log,
      metrics,
      ledger,
      reports,
      registry,
      acquirers: acquirerRegistry,
      acquirerHealth: (name) => registeredHealth(name, acquirers),
      settingsAcquirer: () => settingsHealth(options.acquirerName, acquirers),
      directory,
      apiKeys: partners.apiKeys,
      notifications,
      endWaits: () => {
        arrivals.stop();
        feed.feed.stop();
      },
      money,
      clearing,
      overview: new Overviews({
        figures: delivery.figures,
        standing: counts,
        pending: serviceStatus.pending,
        troubles,
        nowMs: systemClock.nowMs,
      }),
      endpoints,
      restores,
      archive: partners.archive,
      history: postgresHistory(database.homes),
      statements: new Statements(postgresStatements(database.homes), systemClock.nowMs, config.ledgerDays),
      certifications: new Certifications(callbacks),
      certificatesOf: (partner) => certificatesOf(partner, callbacks.connect),
      urlChange: new UrlChange({ ...callbacks, registry, newReqId: randomUUID }),
      isRegisteredDevice,
      refusesToken: (partnerId, tid, token) => ledger.refusesToken(partnerId, tid, token),
      isUnavailable: (error) => ["connection", "conflict"].includes(failureKindOf(error)),
      isStopping: () => isStopping,
      health: () =>
        health({
          isStopping,
          serviceStatus,
          leaseMs: () => lease.remainingMs(),
          isDeliveryFit: worker && (() => worker.isFit),
          acquirers: acquirerDetails(options.acquirerName, acquirers),
        }),
      systemOnly: !runsCommands,
      operators: new Operators(postgresOperators(database.pool, partners.rowSeals), systemClock),
      proposals: partners.proposals,
      endedSessions: new EndedSessions(postgresEndedSessions(database.pool), systemClock),
      oidc: OidcSignIn.of(config, egressFetch(config)),
      audit: partners.audit,
      feed: feed.feed,
      events: alerts,
      clock: systemClock,
      proofPublicKey: proofs.publicKey,
      settings: shownSettings(config),
      receiverControl: options.receiverControl,
      traceRequests: tracing?.requests,
      sessionKey: partners.sessionKey,
      sandbox,
    };
    const http = openListeners(httpParts, options);
    closing.push(() => http.close());

    directory.start();
    const { metricsPartners } = config;
    const known = metricsPartners === 0 ? [] : (await registry.list({ limit: metricsPartners })).items;
    for (const { id } of known) partnerMetrics.know(id);
    if (runsCommands) await acquirers.start();
    await lease.start({
      kind: () => (worker?.isFit === true && !isStopping ? "delivery" : "api"),
      onLost: () => {
        log.warn({}, "the lease is lost: its commands and shards belong to others now");
        worker?.leaseLost();
      },
      onReaped: (leases) => {
        log.warn({ leases }, "leases are dead: their work is taken over");
        worker?.tick();
      },
    });
    // At once: the lease counts for a share of the shards.
    delivery.start();
    for (const part of runsCommands ? [...workers, dueWatch, intake, clearingIntake] : []) await part.start();
    alerts.start();
    feed.start();
    // The instances that call partners: others may have no way to them.
    if (role !== "api") partnerMessages.start();
    const endUpkeep = startMaintenance(infrastructure, {
      ...{ ledger: runsCommands ? ledger : undefined, serviceStatus, partitions, acquirers, sweepCards, contents },
      callbackCas: options.callbackCas,
      audit: partners.auditStore,
      learnAuditKeys: partners.learnAuditKeys,
      rowSeals: partners.rowSeals,
    });
    const endLoopWatch = watchLoop(log);
    closing.push(endLoopWatch);
    observeStatus(metrics, { worker, arrivals, database, lease, serviceStatus, partnerMetrics, acquirers });

    const stop = async () => {
      const noticeMs = runsCommands && isListening && !sandbox ? config.stopNoticeMs : 0;
      isStopping = true;
      lease.kindChanged();
      const upkeepEnded = endUpkeep();
      let pending: number | undefined;
      await stopInOrder({
        leaseMs: () => lease.remainingMs(),
        noticeMs,
        drainMs: config.acquirerTimeoutMs + drainGraceMs,
        onTrouble: warn("a part could not be stopped"),
        drain: () => Promise.all([ledger.stop(), intake.stop(), clearingIntake.stop()]),
        closing: [
          () => dueWatch.stop(),
          // Commands that still wait for the acquirer end without an answer: another instance takes them over.
          () => acquirers.stop(),
          () => unmatched.stop(),
          () => rpc.close(),
          () => Promise.all(workers.map((worker) => worker.stop())),
          () => Promise.all([http.close(), delivery.stop()]),
          () => Promise.all([alerts.stop(), feed.stop(), partnerMessages.stop()]),
          () => upkeepEnded,
          async () => {
            pending = (await status.count()).count;
          },
        ],
        released: [
          () => lease.stop(),
          endLoopWatch,
          () => directory.stop(),
          () => listener.stop(),
          () => database.close(),
          () => tracing?.stop(),
          () => metrics.close(),
        ],
      });
      return pending;
    };
    let stopped: Promise<number | undefined> | undefined;
    return {
      listen() {
        isListening = true;
        return http.listen();
      },
      operatorUrls: () => http.operatorUrls(),
      ledger,
      reports,
      directory,
      registry,
      metrics,
      inFlight: delivery.inFlight,
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

import { commands, notifiedCommands } from "@paybell/contract";
import { Alerts } from "../alerts/alerts.ts";
import { alertKinds } from "../alerts/store.ts";
import { systemClock } from "../clock.ts";
import type { Config } from "../config.ts";
import { failureReasons } from "../delivery/delivery.ts";
import type { EgressProxy } from "../delivery/transport/egress-proxy.ts";
import type { Log } from "../log.ts";
import { createMetrics, type Metrics } from "../metrics.ts";
import type { HomeAddress } from "../store/database/citus.ts";
import { type Database, openDatabase } from "../store/database/database.ts";
import type { GroupCommitHooks } from "../store/database/group-commit.ts";
import { PostgresEvents } from "../store/events.ts";
import type { Tracing } from "../tracing/tracing.ts";
import { isAlerting, openAlertTargets } from "./alert-targets.ts";
import { egressProxyOf } from "./egress.ts";
import { PartnerMetrics } from "./partner-metrics.ts";
import { openTraces } from "./tracing.ts";

/** The infrastructure of every part: database, metrics, log, events. */
export interface Infrastructure {
  readonly config: Config;
  readonly log: Log;
  /** Answers local callers only, and allows http:// and loopback callbacks. */
  readonly sandbox: boolean;
  readonly database: Database;
  readonly metrics: Metrics;
  readonly partnerMetrics: PartnerMetrics;
  readonly alerts: Alerts;
  readonly events: PostgresEvents;
  /** Undefined: the settings name no collector of traces. */
  readonly tracing: Tracing | undefined;
  /** Outgoing connections go through it; undefined: they are direct. */
  readonly egressProxy: EgressProxy | undefined;
  /** Whether alerts are sent. */
  readonly alerting: boolean;
  /** Steps to undo if the service cannot start: the last first. */
  readonly closing: (() => Promise<unknown> | unknown)[];
  /** Logs a failure that is retried later. */
  warn(text: string): (error: unknown) => void;
  /** Observes the group commit of this name: its rows, its time, waiting rows, refused rows. */
  watch(batch: string): GroupCommitHooks;
}

export interface InfrastructureOptions {
  readonly config: Config;
  readonly databaseUrl: string;
  /** With Citus, the homes. */
  readonly homes: readonly HomeAddress[] | undefined;
  readonly log: Log;
  readonly sandbox: boolean;
}

/** @param closing receives the steps that close everything again */
export async function openInfrastructure(
  { config, databaseUrl, homes, log, sandbox }: InfrastructureOptions,
  closing: (() => Promise<unknown> | unknown)[],
): Promise<Infrastructure> {
  const metrics = createMetrics();
  beginAtZero(metrics);
  closing.push(() => metrics.close());
  const tracing = await openTraces(config, log, metrics);
  closing.push(() => tracing?.stop());
  const database = openDatabase(databaseUrl, {
    homes,
    connectionsMax: config.databaseConnections,
    onIdleError: (error) => log.warn({ err: error }, "a connection to the database broke"),
  });
  closing.push(() => database.close());
  const alerting = isAlerting(config);
  const events = new PostgresEvents(database.homes);
  const egressProxy = egressProxyOf(config, (detail) => {
    log.warn({ detail }, "the egress proxy fails: deliveries are put off");
    void alerts.record({ kind: "egress_failed", partnerId: null, subjectId: null, detail: { detail } });
  });
  const alerts = new Alerts({
    store: events,
    targets: alerting ? () => openAlertTargets(config, systemClock, egressProxy) : undefined,
    quietS: config.alertQuietS,
    clock: systemClock,
    log,
    onRecorded: (kind) => metrics.alerts.inc({ kind }),
  });
  closing.push(() => alerts.stop());
  return {
    config,
    log,
    sandbox,
    database,
    metrics,
    partnerMetrics: new PartnerMetrics(metrics, config.metricsPartners),
    alerts,
    events,
    tracing,
    egressProxy,
    alerting,
    closing,
    warn: (text) => (error) => log.warn({ err: error }, text),
    watch: (batch) => ({
      onFlush: (rows, durationMs, waitingRows) => {
        metrics.groupCommitWaiting.set({ batch }, waitingRows);
        metrics.groupCommitRows.observe({ batch }, rows);
        metrics.groupCommitSeconds.observe({ batch }, durationMs / 1_000);
      },
      onRefused: () => metrics.groupCommitRefused.inc({ batch }),
      onAdded: tracing && ((item) => tracing.traces.commit(batch, item)),
    }),
  };
}

/**
 * Rules for alerts look at increases. A series has none at its first event if it begins with that, so each whose labels
 * are known begins at 0. Those of routes, partners and acquirers do when these are.
 */
function beginAtZero(metrics: Metrics): void {
  for (const kind of alertKinds) metrics.alerts.inc({ kind }, 0);
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

import { Alerts } from "../alerts/alerts.ts";
import { Restores } from "../backups/restores.ts";
import { systemClock } from "../clock.ts";
import type { Config } from "../config/config.ts";
import { ownVersion } from "../programs/process.ts";
import { type Database, openDatabase } from "../store/database/database.ts";
import type { GroupCommitHooks } from "../store/database/group-commit.ts";
import type { HomeAddress } from "../store/database/homes.ts";
import { postgresEvents } from "../store/events.ts";
import { PostgresRestores } from "../store/restores.ts";
import type { EventSink } from "../telemetry/events.ts";
import type { Log } from "../telemetry/log.ts";
import { createMetrics, type Metrics } from "../telemetry/metrics.ts";
import type { Tracing } from "../tracing/tracing.ts";
import { egressProxyOf } from "./egress.ts";
import { isAlerting, openAlertTargets } from "./observation/alerts.ts";
import { beginAtZero, PartnerMetrics } from "./observation/observation.ts";

export interface InfrastructureOptions {
  readonly config: Config;
  readonly databaseUrl: string;
  /** With Citus, the homes. */
  readonly homes: readonly HomeAddress[] | undefined;
  readonly log: Log;
  readonly sandbox: boolean;
}

/** The infrastructure of every part: database, metrics, log, events. */
export type Infrastructure = Awaited<ReturnType<typeof openInfrastructure>>;

/** @param closing receives the steps that undo everything if the service cannot start: the last is done first */
export async function openInfrastructure(
  { config, databaseUrl, homes, log, sandbox }: InfrastructureOptions,
  closing: (() => Promise<unknown> | unknown)[],
) {
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
  const events = postgresEvents(database.homes);
  const egressProxy = egressProxyOf(config, {
    onNotOpened: (kind) => metrics.egressFailures.inc({ kind }),
    onFailure: (detail) => {
      log.warn({ detail }, "the egress proxy fails: deliveries are postponed");
      void alerts.record({ kind: "egress_failed", partnerId: null, subjectId: null, detail: { detail } });
    },
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
    /** Logs a failure that is retried later. */
    warn: (text: string) => (error: unknown) => log.warn({ err: error }, text),
    /** Observes the group commit of this name: its rows, its time, waiting rows, refused rows. */
    watch: (batch: string): GroupCommitHooks => ({
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

/** Traces by the settings; undefined if there are none. Then none of their code is loaded. */
async function openTraces(config: Config, log: Log, metrics: Metrics): Promise<Tracing | undefined> {
  if (config.tracesEndpoint === null) return undefined;
  const { openTracing } = await import("../tracing/tracing.ts");
  return openTracing({ config, version: ownVersion(), log, metrics });
}

/** Holds what was pending in a database that was restored from a backup, before anything can be sent. */
export async function holdRestored(database: Database, events: EventSink): Promise<Restores> {
  const store = new PostgresRestores(database);
  const restore = await store.holdMarked(systemClock.nowMs());
  if (restore !== undefined) {
    const { name, held, endsAtMs } = restore;
    const endsAt = endsAtMs === null ? null : new Date(endsAtMs).toISOString();
    events.record({ kind: "restored", partnerId: null, subjectId: null, detail: { name, held, endsAt } });
  }
  return new Restores(store);
}

import type { Acquirers } from "../acquirer/acquirers.ts";
import { systemClock } from "../clock.ts";
import type { ContentMac } from "../delivery/content-mac.ts";
import type { Ledger } from "../ledger/ledger.ts";
import { dropOldAudit } from "../operators/drop-old-audit.ts";
import { PostgresFigures } from "../store/deliveries/figures.ts";
import { ContentSealing } from "../store/notifications/content-sealing.ts";
import type { PostgresAudit } from "../store/operators/audit.ts";
import type { RowSeals } from "../store/operators/row-seals.ts";
import { PostgresPartners } from "../store/partners/partners.ts";
import type { Partitions } from "../store/schema/partitions.ts";
import { LedgerRetention } from "../store/transactions/retention.ts";
import { AcquirerWatch } from "./acquirer-watch.ts";
import { tellAuditHead } from "./audit-head.ts";
import { learnAuditKeysEveryMs } from "./audit-keys.ts";
import { watchBacklog } from "./backlog-watch.ts";
import { watchCertificates } from "./certificate-watch.ts";
import type { Infrastructure } from "./infrastructure.ts";
import { maintainPartitions } from "./maintain-partitions.ts";
import type { ServiceStatus } from "./service-status.ts";
import { ShardWatch } from "./shard-watch.ts";

export interface MaintenanceParts {
  /** Undefined if no commands are run. */
  readonly ledger: Ledger | undefined;
  readonly standing: Pick<ServiceStatus, "pending" | "unownedShards">;
  readonly partitions: Partitions;
  readonly acquirers: Acquirers;
  /** The PEM certificates of PAYBELL_CALLBACK_CA_FILE. */
  readonly callbackCas: readonly string[];
  readonly audit: PostgresAudit;
  /** Reads the versions of the audit key that a rotation added. */
  readonly learnAuditKeys: () => Promise<void>;
  readonly rowSeals: Pick<RowSeals, "sealDatabase">;
  readonly contents: ContentMac;
  /** Deletes cards that no message can need any more. */
  readonly sweepCards: () => Promise<number>;
}

const sweepCardsEveryMs = 30_000;
const maintainEveryMs = 3_600_000;
const watchAcquirerEveryMs = 5_000;
const watchBacklogEveryMs = 10_000;
const watchShardsEveryMs = 5_000;

/**
 * Starts the periodic work: every few seconds, every minute and every hour. @returns a function that stops it, after
 * running work
 */
export function startMaintenance(infrastructure: Infrastructure, kept: MaintenanceParts): () => Promise<void> {
  const { ledger, standing, partitions } = kept;
  const { database, config, metrics, alerts, events, log, closing, warn } = infrastructure;
  const retention = new LedgerRetention({
    homes: database.homes,
    clock: systemClock,
    ledgerDays: config.ledgerDays,
    onDropped: (table, rows) => metrics.ledgerDropped.inc({ table }, rows),
  });
  const figures = new PostgresFigures(database.homes);
  const dropOld = () => {
    dropOldAudit(kept.audit, systemClock, config.auditDays).catch(
      warn("old entries of the audit could not be dropped"),
    );
    figures.dropOld(systemClock.nowMs()).catch(warn("old figures could not be dropped"));
    retention.run().catch(warn("expired rows of the ledger could not be dropped"));
  };
  const contentSealing = new ContentSealing({ ...database, contents: kept.contents });
  const sealContents = () => contentSealing.run().catch(warn("notifications of an older version could not be sealed"));
  // The rows were sealed before the partners were read.
  void sealContents();
  const lookAtCertificates = () => {
    const failed = warn("certificates could not be checked");
    const watched = {
      store: new PostgresPartners(database),
      serviceCas: kept.callbackCas,
      wasSentSince: events.wasSentSince.bind(events),
      events: alerts,
    };
    watchCertificates(watched, systemClock.nowMs()).catch(failed);
  };
  lookAtCertificates();
  const head = { ...{ audit: kept.audit, log, events: alerts }, wasSentSince: events.wasSentSince.bind(events) };
  const acquirerWatch = new AcquirerWatch(kept.acquirers, alerts);
  const timers = [
    setInterval(() => acquirerWatch.check(), watchAcquirerEveryMs),
    setInterval(() => {
      if (ledger !== undefined) kept.sweepCards().catch(warn("cards that are not needed could not be deleted"));
    }, sweepCardsEveryMs),
    setInterval(() => {
      maintainPartitions(partitions, alerts, log).catch(warn("the days of history could not be maintained"));
      dropOld();
      lookAtCertificates();
      tellAuditHead(head, systemClock.nowMs()).catch(warn("the audit's last entry could not be sent"));
      kept.rowSeals.sealDatabase().catch(warn("the database could not be sealed"));
      void sealContents();
    }, maintainEveryMs),
    setInterval(() => {
      kept.learnAuditKeys().catch(warn("the versions of the audit key could not be read"));
    }, learnAuditKeysEveryMs),
    setInterval(() => {
      watchBacklog({
        count: () => standing.pending(),
        wasSentSince: (kind, sinceMs) => events.wasSentSince(kind, sinceMs),
        events: alerts,
        alertAfterS: config.oldestPendingAlertS,
      }).catch(warn("the oldest pending notification could not be read"));
    }, watchBacklogEveryMs),
  ];
  const shards = new ShardWatch({
    unowned: () => standing.unownedShards(),
    wasSentSince: (kind, sinceMs) => events.wasSentSince(kind, sinceMs),
    events: alerts,
  });
  timers.push(setInterval(() => void shards.look().catch(warn("the shards could not be checked")), watchShardsEveryMs));
  dropOld();
  const end = async () => {
    for (const timer of timers) clearInterval(timer);
    await Promise.all([retention.stop(), contentSealing.stop()]);
    await tellAuditHead(head, systemClock.nowMs(), true).catch(warn("the audit's last entry could not be sent"));
  };
  closing.push(end);
  return end;
}

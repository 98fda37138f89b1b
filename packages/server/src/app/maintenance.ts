import type { Acquirers } from "../acquirer/acquirer.ts";
import type { Alerts } from "../alerts/alerts.ts";
import {
  AcquirerWatch,
  ofService,
  reportAuditHead,
  ShardWatch,
  watchBacklog,
  watchCertificates,
} from "../alerts/watches.ts";
import { systemClock } from "../clock.ts";
import type { ContentMac } from "../delivery/attempt/content-mac.ts";
import type { Ledger } from "../ledger/ledger.ts";
import { dropOldAudit } from "../operators/audit.ts";
import { postgresFigures } from "../store/deliveries/figures.ts";
import { ContentSealing } from "../store/notifications/content-sealing.ts";
import type { PostgresAudit } from "../store/operators/audit.ts";
import type { RowSeals } from "../store/operators/row-seals.ts";
import { postgresCertificates } from "../store/partners/partners.ts";
import type { Partitions } from "../store/schema/partitions.ts";
import { LedgerRetention } from "../store/transactions/ledger-retention.ts";
import type { Log } from "../telemetry/log.ts";
import { learnAuditKeysEveryMs } from "./audit-keys.ts";
import type { Infrastructure } from "./infrastructure.ts";
import type { ServiceStatus } from "./observation/health.ts";

export interface MaintenanceParts {
  /** Undefined if no commands are run. */
  readonly ledger: Ledger | undefined;
  readonly serviceStatus: Pick<ServiceStatus, "pending" | "unownedShards">;
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

/** Work that is done again and again. */
interface Task {
  readonly everyMs: number;
  run(): Promise<unknown>;
  /** What the log says if it fails: it is tried again. */
  readonly failure: string;
  /** Done at the start too. */
  readonly atStart?: boolean;
}

const second = 1_000;
const hour = 3_600_000;

/** Starts the periodic work. @returns a function that stops it, after running work */
export function startMaintenance(infrastructure: Infrastructure, parts: MaintenanceParts): () => Promise<void> {
  const { ledger, serviceStatus, partitions, audit } = parts;
  const { database, config, metrics, alerts, log, closing, warn } = infrastructure;
  const retention = new LedgerRetention({
    homes: database.homes,
    clock: systemClock,
    ledgerDays: config.ledgerDays,
    onDropped: (table, rows) => metrics.ledgerDropped.inc({ table }, rows),
  });
  const figures = postgresFigures(database.homes);
  const contentSealing = new ContentSealing({ ...database, contents: parts.contents });
  const certificates = postgresCertificates(database.homes);
  const acquirerWatch = new AcquirerWatch(parts.acquirers, alerts);
  const shardWatch = new ShardWatch(alerts);
  const tasks: readonly Task[] = [
    {
      everyMs: 5 * second,
      run: () => acquirerWatch.check(),
      failure: "the acquirers could not be checked",
    },
    {
      everyMs: 5 * second,
      run: async () => shardWatch.check(await serviceStatus.unownedShards()),
      failure: "the shards could not be checked",
    },
    {
      everyMs: 10 * second,
      run: async () => watchBacklog(await serviceStatus.pending(), config.oldestPendingAlertS, alerts),
      failure: "the oldest pending notification could not be read",
    },
    {
      everyMs: 30 * second,
      run: async () => ledger && parts.sweepCards(),
      failure: "cards that are not needed could not be deleted",
    },
    {
      everyMs: learnAuditKeysEveryMs,
      run: () => parts.learnAuditKeys(),
      failure: "the versions of the audit key could not be read",
    },
    {
      everyMs: hour,
      run: () => maintainPartitions(partitions, alerts, log),
      failure: "the days of history could not be maintained",
    },
    {
      everyMs: hour,
      atStart: true,
      run: () => dropOldAudit(audit, systemClock, config.auditDays),
      failure: "old entries of the audit could not be dropped",
    },
    {
      everyMs: hour,
      atStart: true,
      run: () => figures.dropOld(systemClock.nowMs()),
      failure: "old figures could not be dropped",
    },
    {
      everyMs: hour,
      atStart: true,
      run: () => retention.run(),
      failure: "expired rows of the ledger could not be dropped",
    },
    {
      everyMs: hour,
      atStart: true,
      run: () => watchCertificates(certificates, parts.callbackCas, alerts),
      failure: "certificates could not be checked",
    },
    {
      everyMs: hour,
      run: () => reportAuditHead(audit, alerts, log),
      failure: "the audit's last entry could not be sent",
    },
    {
      everyMs: hour,
      run: () => parts.rowSeals.sealDatabase(),
      failure: "the database could not be sealed",
    },
    {
      // Rows were sealed before the partners were read.
      everyMs: hour,
      atStart: true,
      run: () => contentSealing.run(),
      failure: "notifications of an older version could not be sealed",
    },
  ];
  const runTask = ({ run, failure }: Task) => void run().catch(warn(failure));
  for (const task of tasks.filter(({ atStart }) => atStart)) runTask(task);
  const timers = tasks.map((task) => setInterval(runTask, task.everyMs, task));
  const end = async () => {
    for (const timer of timers) clearInterval(timer);
    await Promise.all([retention.stop(), contentSealing.stop()]);
    await reportAuditHead(audit, alerts, log, true).catch(warn("the audit's last entry could not be sent"));
  };
  closing.push(end);
  return end;
}

const daysAheadMin = 3;

/**
 * Creates missing days of history, drops those past retention, and reports failures. Rejects if there is no partition
 * for today.
 */
export async function maintainPartitions(
  partitions: Pick<Partitions, "maintain">,
  alerts: Pick<Alerts, "record">,
  log: Log,
): Promise<void> {
  const { created, dropped, waiting, troubles, daysAhead, prolonged } = await partitions.maintain();
  for (const trouble of troubles) log.error({ err: trouble }, "a day of history could not be made; it is tried again");
  if (created + dropped > 0) log.info({ created, dropped, daysAhead }, "history maintained");
  if (prolonged !== undefined) {
    const { days, scheduleDays } = prolonged;
    log.error(
      prolonged,
      `a partner's retry schedule lasts ${scheduleDays} days, so history is kept for ${days}. ` +
        `Set PAYBELL_HISTORY_DAYS to at least ${days}, or shorten the schedule`,
    );
  }
  if (daysAhead < daysAheadMin) await alerts.record(ofService("partitions_short", { daysAhead }));
  if (waiting.length > 0 || prolonged !== undefined) {
    await alerts.record(ofService("history_waiting", { waiting, keptDays: prolonged?.days }));
  }
}

import { setTimeout as pause } from "node:timers/promises";
import {
  existingAuditKeys,
  openAuditKeys,
  type RotatedAuditKey,
  rotateAuditKey,
  sealedAudit,
} from "../app/audit-keys.ts";
import { systemClock } from "../clock.ts";
import type { Config } from "../config/config.ts";
import { type AuditHead, type ExportFormat, exportedAfter, type Verified, verifyAudit } from "../operators/audit.ts";
import { requireFittingMasterKey } from "../partners/master-key.ts";
import type { Database } from "../store/database/database.ts";
import { PostgresAudit } from "../store/operators/audit.ts";
import { type ChangedRow, RowSeals } from "../store/operators/row-seals.ts";
import { postgresPartners } from "../store/partners/partners.ts";
import type { SchemaUrls } from "../store/schema/migrate.ts";
import { withExistingDatabase, withStore } from "./database.ts";
import { openMasterKey } from "./master-key.ts";
import { ownVersion, unlessAborted } from "./process.ts";

const lookEveryMs = 1_000;
/** The SQLSTATE. */
const undefinedTable = "42P01";

export interface VerifiedAudit extends Verified {
  /** Without the master key, MACs are not verified. */
  readonly macs: "verified" | "not verified";
  /** Operators and API keys that are not as their last entry left them. */
  readonly changedRows: readonly ChangedRow[];
}

/** `paybell audit verify`: reads the whole chain, and the rows that it seals. It changes nothing. */
export function verifyAuditOf(config: Config, signal: AbortSignal, expect?: AuditHead): Promise<VerifiedAudit> {
  const verify = async (audit: PostgresAudit, database: Database): Promise<VerifiedAudit> => {
    const masterKey = config.masterKey === null ? undefined : await openMasterKey(config);
    const keys = masterKey && (await existingAuditKeys(masterKey, postgresPartners(database)));
    const verified = await verifyAudit(audit, { keys, expect });
    if (keys === undefined) return { ...verified, macs: "not verified", changedRows: [] };
    const seals = new RowSeals({
      ...{ pool: database.pool, keys, version: ownVersion() },
      asService: () => {
        throw new Error("A verification changes nothing.");
      },
      onChanged: () => undefined,
      onSealed: () => undefined,
    });
    return { ...verified, macs: "verified", changedRows: await seals.changedRows() };
  };
  return withAudit(config, verify, signal);
}

/** `paybell audit rotate-key`: the next version of the key of its MACs. */
export function rotateAuditKeyOf(config: Config, signal: AbortSignal): Promise<RotatedAuditKey> {
  const rotate = async (_: PostgresAudit, database: Database) => {
    const [masterKey, store] = [await openMasterKey(config), postgresPartners(database)];
    await requireFittingMasterKey(masterKey, store);
    const keys = await openAuditKeys(masterKey, store);
    return await rotateAuditKey(masterKey, store, sealedAudit(database, keys), systemClock.nowMs());
  };
  return withAudit(config, rotate, signal);
}

export interface AuditExport {
  readonly format: ExportFormat;
  /** The entry before the first one to export. */
  readonly after: number;
  /** Continues with new entries until the signal. */
  readonly follow: boolean;
}

/** `paybell audit export`: writes the entries in order, as fast as they are read. */
export function exportAuditOf(
  config: Config,
  { format, after, follow }: AuditExport,
  out: NodeJS.WritableStream,
  signal: AbortSignal,
): Promise<void> {
  return withAudit(config, async (audit) => {
    for (let from = after; ; await pause(lookEveryMs, undefined, { signal }).catch(() => undefined)) {
      for await (const { seq, lines } of exportedAfter(audit, from, format)) {
        await unlessAborted(signal, written(out, lines)).catch((error: unknown) => {
          if (!signal.aborted) throw error;
        });
        from = seq;
        if (signal.aborted) return;
      }
      if (!follow || signal.aborted) return;
    }
  });
}

/** Resolves once the reader has it, or the file. */
function written(out: NodeJS.WritableStream, text: string): Promise<void> {
  return new Promise((resolve, reject) => {
    out.write(text, (error) => {
      if (error) reject(new Error(`the output cannot be written: ${error.message}`));
      else resolve();
    });
  });
}

function withAudit<Result>(
  config: Config,
  use: (audit: PostgresAudit, database: Database) => Promise<Result>,
  signal?: AbortSignal,
): Promise<Result> {
  const useAudit = (database: Database) => use(new PostgresAudit(database.pool), database);
  const useDatabase = ({ databaseUrl }: SchemaUrls) =>
    withStore(databaseUrl, useAudit).catch((error: unknown) => {
      if ((error as { code?: unknown }).code !== undefinedTable) throw error;
      const why = "this database has no audit: no service has started on it. Does DATABASE_URL name the right one?";
      throw new Error(why, { cause: error });
    });
  return withExistingDatabase(config, useDatabase, signal);
}

import type { PoolClient } from "pg";
import type { TransactionId } from "../../ids.ts";
import type { NewNotification } from "../../ledger/notifier.ts";
import type {
  Completed,
  Completion,
  CompletionStore,
  Release,
  Reported,
  ReportedCompletion,
} from "../../ledger/store.ts";
import { GroupCommit, type GroupCommitHooks } from "../database/group-commit.ts";
import type { Home, Homes, PerHome } from "../database/homes.ts";
import { prepared } from "../database/statement.ts";
import { assertCommitted, isUniqueViolation } from "../database/transaction.ts";
import * as sql from "./completion-sql.ts";
import { releaseReport } from "./due.ts";
import { hasNoEffects, writeEffects } from "./effects.ts";

// A result that changed nothing is late, unless it is our own, made durable by an unknown COMMIT. One without an IPN is
// known by its response code.
const completedBefore = prepared<sql.At & { notification_id: string | null; state: string; code: string }>(`
    SELECT t.id, t.notification_id, t.state, coalesce(t.facts #>> '{fields,isoResponseCode}', '') AS code,
      t.completed_at AS at
    FROM unnest($1::uuid[], $2::uuid[]) AS i (partner_id, id)
    JOIN transactions t ON t.partner_id = i.partner_id AND t.id = i.id`);

const reportedBefore = prepared<KnownRow>(`
  SELECT i.partner_id, i.external_id, t.id, t.notification_id, t.created_at AS at, t.command,
    t.original_external_id, t.callback_url, t.facts
  FROM unnest($1::uuid[], $2::text[]) AS i (partner_id, external_id)
  JOIN transactions t
    ON (t.partner_id = i.partner_id) IS TRUE AND t.external_id = i.external_id AND t.origin = 'switch'`);

/**
 * While PostgreSQL writes one batch, this process prepares the next. Measured with 256 callers: in a single batch all
 * wait for PostgreSQL together, and the process was idle for a third of the time, not an eighth. A row does not cost
 * less in a larger batch.
 */
const reportRowsMax = 128;
/**
 * Measured at 1,000 reports a second, two or three per batch, alternating: with 16, p99 was 47 to 59 ms instead of 56
 * to 84, and PostgreSQL's share of each a tenth less.
 */
const reportRowsMin = 16;

interface KnownRow extends sql.ReportedRow {
  readonly notification_id: string | null;
  readonly command: ReportedCompletion["command"];
  readonly original_external_id: string | null;
  readonly callback_url: string | null;
  readonly facts: ReportedCompletion["facts"];
}

/**
 * The only place that opens the transaction "result + IPN + pending delivery". It gets each as one value, so that "paid
 * but not notified" cannot be written. Concurrent completions share one commit.
 */
export class PostgresCompletions implements CompletionStore {
  readonly #homes: Homes;
  readonly #macOf: sql.MacOf;
  readonly #completions: PerHome<GroupCommit<Completion, Completed>>;
  readonly #reports: PerHome<GroupCommit<ReportedCompletion, Reported>>;

  /** @param macOf absent: notifications are stored without a MAC */
  constructor(
    homes: Homes,
    { turn, macOf = () => null, ...observe }: GroupCommitHooks & { readonly macOf?: sql.MacOf } = {},
  ) {
    this.#homes = homes;
    this.#macOf = macOf;
    this.#completions = homes.each(
      (home) =>
        new GroupCommit<Completion, Completed>({
          name: "complete",
          key: (completion) => `${completion.partnerId} ${completion.id}`,
          bytes: (completion) => bytesOf(completion.notification),
          commit: (completions) => this.#complete(home, completions),
          // The acquirer has answered: this is written, or another instance takes the command over.
          giveUpAfterMs: Number.POSITIVE_INFINITY,
          ...observe,
        }),
    );
    this.#reports = homes.each(
      (home) =>
        new GroupCommit<ReportedCompletion, Reported>({
          name: "report",
          rowsMax: reportRowsMax,
          rowsMin: reportRowsMin,
          key: keyOf,
          bytes: (report) => bytesOf(report.notification),
          commit: (reports) => this.#report(home, reports),
          giveUpAfterMs: 5_000,
          ...(turn && { turn }),
          ...observe,
        }),
    );
  }

  complete(completion: Completion): Promise<Completed> {
    return this.#completions.of(completion.partnerId).add(completion);
  }

  report(report: ReportedCompletion): Promise<Reported> {
    return this.#reports.of(report.partnerId).add(report);
  }

  async release({
    partnerId,
    id,
    originalId,
    chainId,
    batchId,
    facts,
    notification,
  }: Release): Promise<number | undefined> {
    let at: Date | undefined;
    await this.#inTransaction(this.#homes.of(partnerId), async (client) => {
      const values = [partnerId, id, originalId, chainId, batchId, JSON.stringify(facts)];
      at = (await releaseReport.first(client, values))?.at;
      return at === undefined ? [] : insertTheirNotifications(client, [{ notification, batchId }], this.#macOf);
    });
    return at?.getTime();
  }

  async #complete(home: Home, completions: readonly Completion[]): Promise<ReadonlyMap<string, Completed>> {
    const applied =
      home.handsRowsOn && completions.every(hasNoEffects)
        ? await this.#completeInOneStatement(home, completions)
        : await this.#completeWithEffects(home, completions);
    const missed = completions.filter((completion) => !applied.has(completion.id));
    const before = missed.length > 0 ? await this.#completedBefore(home, missed) : applied;
    return new Map(
      completions.map((completion) => {
        const at = applied.get(completion.id) ?? before.get(completion.id);
        const key = `${completion.partnerId} ${completion.id}`;
        return [key, at ? { outcome: "completed", atMs: at.getTime() } : { outcome: "late" }];
      }),
    );
  }

  async #completedBefore(home: Home, completions: readonly Completion[]): Promise<ReadonlyMap<TransactionId, Date>> {
    const rows = await completedBefore.rows(home.engine, [
      completions.map((completion) => completion.partnerId),
      completions.map((completion) => completion.id),
    ]);
    const own = new Map(completions.map((completion) => [completion.id, completion]));
    return new Map(
      rows
        .filter((row) => {
          const completion = own.get(row.id);
          if (completion === undefined || row.state !== completion.state) return false;
          if (row.code !== (completion.facts.fields["isoResponseCode"] ?? "")) return false;
          return row.notification_id === (completion.notification?.id ?? null);
        })
        .map((row) => [row.id, row.at]),
    );
  }

  /** One round trip: each statement is a transaction of its own. */
  async #completeInOneStatement(
    { engine }: Home,
    completions: readonly Completion[],
  ): Promise<ReadonlyMap<TransactionId, Date>> {
    const values = sql.completionsWhole.values(completions, this.#macOf);
    const rows = await sql.completeInOneStatement.rows(engine, values);
    return new Map(rows.map((row) => [row.id, row.at]));
  }

  async #completeWithEffects(
    home: Home,
    completions: readonly Completion[],
  ): Promise<ReadonlyMap<TransactionId, Date>> {
    const applied = new Map<TransactionId, Date>();
    await this.#inTransaction(home, async (client) => {
      const values = sql.completions.values(completions);
      const rows = await sql.completeTransactions.rows(client, values);
      for (const row of rows) applied.set(row.id, row.at);
      const batches = new Map(rows.map((row) => [row.id, row.batch_id]));
      const effective = completions
        .filter(({ id }) => applied.has(id))
        .map((completion) => ({ ...completion, batchId: batches.get(completion.id) ?? null }));
      return [...writeEffects(client, effective), ...insertTheirNotifications(client, effective, this.#macOf)];
    });
    return applied;
  }

  async #report(home: Home, reports: readonly ReportedCompletion[]): Promise<ReadonlyMap<string, Reported>> {
    try {
      const values = sql.reportsWhole.values(reports, this.#macOf);
      const atMs = (await sql.insertReportsInOneStatement.first(home.engine, values))?.at.getTime() ?? 0;
      return new Map(reports.map((report) => [keyOf(report), { outcome: "accepted", id: report.id, atMs }]));
    } catch (error) {
      if (!isUniqueViolation(error)) throw error;
      return this.#reportWithDuplicates(home, reports);
    }
  }

  async #reportWithDuplicates(
    home: Home,
    reports: readonly ReportedCompletion[],
  ): Promise<ReadonlyMap<string, Reported>> {
    const inserted = new Map<string, Date>();
    await this.#inTransaction(home, async (client) => {
      const rows = await sql.insertReports.rows(client, sql.reports.values(reports));
      for (const row of rows) inserted.set(`${row.partner_id} ${row.external_id}`, row.at);
      return insertTheirNotifications(
        client,
        reports.filter((report) => inserted.has(keyOf(report)) && report.waitsForOriginal !== true),
        this.#macOf,
      );
    });
    const missed = reports.filter((report) => !inserted.has(keyOf(report)));
    const before = missed.length > 0 ? await this.#reportedBefore(home, missed) : new Map<string, KnownRow>();
    return new Map(
      reports.map((report): [string, Reported] => {
        const at = inserted.get(keyOf(report));
        if (at) return [keyOf(report), { outcome: "accepted", id: report.id, atMs: at.getTime() }];
        const known = before.get(keyOf(report));
        if (known === undefined) return [keyOf(report), { outcome: "id_taken" }];
        if (isOwn(report, known)) {
          return [keyOf(report), { outcome: "accepted", id: report.id, atMs: known.at.getTime() }];
        }
        return [keyOf(report), { outcome: "known", id: known.id, before: contentOf(known) }];
      }),
    );
  }

  async #reportedBefore(
    { engine }: Home,
    reports: readonly ReportedCompletion[],
  ): Promise<ReadonlyMap<string, KnownRow>> {
    const rows = await reportedBefore.rows(engine, [
      reports.map((report) => report.partnerId),
      reports.map((report) => report.externalId),
    ]);
    return new Map(rows.map((row) => [`${row.partner_id} ${row.external_id}`, row]));
  }

  /** `write` sends the statements; those that it returns are sent together with COMMIT, without waiting. */
  async #inTransaction(
    { engine }: Home,
    write: (client: PoolClient) => Promise<readonly Promise<unknown>[]>,
  ): Promise<void> {
    const client = await engine.connect();
    try {
      // Sent after BEGIN without waiting for its answer.
      const [, rest] = await Promise.all([client.query("BEGIN"), write(client)]);
      await Promise.all([...rest, client.query("COMMIT").then(assertCommitted)]);
      client.release();
    } catch (error) {
      client.release(true);
      throw error;
    }
  }
}

function insertTheirNotifications(
  client: PoolClient,
  items: readonly { readonly notification: NewNotification | null; readonly batchId: string | null }[],
  macOf: sql.MacOf,
): Promise<unknown>[] {
  const notified = items.flatMap(({ notification, batchId }) => (notification ? [{ notification, batchId }] : []));
  if (notified.length === 0) return [];
  const values = sql.notifications.values(notified, macOf);
  return [sql.insertNotifications.run(client, values)];
}

/**
 * Whether the row belongs to this very report, because its COMMIT had happened after all. The transaction's id does not
 * decide: the switch may assign it, and repeats it. The notification's id is new for each report. A system command has
 * none: its own row counts as reported before, and it is a duplicate.
 */
function isOwn({ notification }: ReportedCompletion, known: KnownRow): boolean {
  return notification !== null && known.notification_id === notification.id;
}

function contentOf({ command, original_external_id, callback_url, facts }: KnownRow) {
  return { command, originalExternalId: original_external_id, callBackUrl: callback_url, facts };
}

function bytesOf(notification: NewNotification | null): number {
  return notification === null ? 512 : Buffer.byteLength(notification.content) + 512;
}

function keyOf({ partnerId, externalId }: ReportedCompletion): string {
  return `${partnerId} ${externalId}`;
}

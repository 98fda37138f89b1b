import type { Pool, PoolClient, QueryResult } from "pg";
import type { PartnerId, TransactionId } from "../ids.ts";
import type { NewNotification } from "../ledger/notifier.ts";
import type { Completed, Completion, CompletionStore, Report, Reported } from "../ledger/store.ts";
import { writeEffects } from "./effects.ts";
import { GroupCommit, type GroupCommitOptions } from "./group-commit.ts";
import { jsonList } from "./json-list.ts";

const completeTransactions = {
  name: "complete_transactions",
  text: `
    UPDATE transactions t SET state = i.state, facts = i.facts, notification_id = i.notification_id,
      completed_at = now(),
      instance_id = NULL, epoch = NULL
    FROM unnest($1::uuid[], $2::uuid[], $3::text[], string_to_array($4, E'\\x01')::json[], $5::uuid[], $6::uuid[],
      $7::integer[])
      AS i (partner_id, id, state, facts, notification_id, instance_id, epoch)
    WHERE t.partner_id = i.partner_id AND t.id = i.id
      AND t.state = 'INIT' AND t.instance_id = i.instance_id AND t.epoch = i.epoch
    RETURNING t.id, t.completed_at AS at`,
};

// An answer that changed nothing is late, unless it is our own that an unknown COMMIT had made durable.
const completedBefore = {
  name: "completed_before",
  text: `
    SELECT t.id, t.notification_id, t.state, t.completed_at AS at FROM unnest($1::uuid[],
      $2::uuid[]) AS i (partner_id, id)
    JOIN transactions t ON t.partner_id = i.partner_id AND t.id = i.id`,
};

const insertReports = {
  name: "insert_reports",
  text: `
    INSERT INTO transactions (partner_id, id, origin, command, state, req_id, external_id, original_id,
      original_external_id,
      chain_id, callback_url, facts, notification_id, completed_at)
    SELECT i.partner_id, i.id, 'switch', i.command, i.state, i.req_id, i.external_id, i.original_id,
      i.original_external_id,
      i.chain_id, i.callback_url, i.facts, i.notification_id, now()
    FROM unnest($1::uuid[], $2::uuid[], $3::text[], $4::text[], $5::text[], $6::text[], $7::uuid[], $8::text[],
      $9::uuid[],
      $10::text[], string_to_array($11, E'\\x01')::json[], $12::uuid[])
      AS i (partner_id, id, command, state, req_id, external_id, original_id, original_external_id, chain_id,
        callback_url,
        facts, notification_id)
    ON CONFLICT DO NOTHING
    RETURNING id, created_at AS at`,
};

const reportedBefore = {
  name: "reported_before",
  text: `
    SELECT i.partner_id, i.external_id, t.id, t.notification_id, t.created_at AS at
    FROM unnest($1::uuid[], $2::text[]) AS i (partner_id, external_id)
    JOIN transactions t ON t.partner_id = i.partner_id AND t.external_id = i.external_id AND t.origin = 'switch'`,
};

// History and the pending delivery in one statement. Born leased, a row has its first claim already.
const insertNotifications = {
  name: "insert_notifications",
  text: `
    WITH i AS MATERIALIZED (
      SELECT * FROM unnest($1::uuid[], $2::uuid[], $3::uuid[], $4::uuid[], $5::text[], $6::uuid[], $7::text[],
        $8::text[],
        string_to_array($9, E'\\x01')::json[], $10::integer[], $11::uuid[], $12::integer[], $13::text[],
          $14::boolean[], $15::uuid[])
        AS i (partner_id, id, transaction_id, original_id, original_external_id, chain_id, command, callback_url,
          content,
          bytes, instance_id, epoch, origin, follows, settles_batch)),
    history AS (
      INSERT INTO notifications (partner_id, id, transaction_id, original_id, original_external_id, chain_id, command,
        callback_url, content)
      SELECT partner_id, id, transaction_id, original_id, original_external_id, chain_id, command, callback_url,
        content FROM i)
    INSERT INTO pending (partner_id, id, chain_id, due_at, instance_id, epoch, claim_no, bytes, origin, follows,
      settles_batch)
    SELECT partner_id, id, chain_id, now(), instance_id, epoch, CASE WHEN instance_id IS NULL THEN 0 ELSE 1 END,
      bytes, origin,
      follows, settles_batch
    FROM i`,
};

interface At {
  readonly id: TransactionId;
  readonly at: Date;
}

interface ReportedRow extends At {
  readonly partner_id: PartnerId;
  readonly external_id: string;
  readonly notification_id: string | null;
}

/**
 * The only place that opens the transaction "result + IPN + pending delivery". It takes each as one value, so that
 * "paid but not notified" cannot be written. Concurrent completions share one commit.
 */
export class PostgresCompletions implements CompletionStore {
  readonly #engine: Pool;
  readonly #completions: GroupCommit<Completion, Completed>;
  readonly #reports: GroupCommit<Report, Reported>;

  constructor(
    engine: Pool,
    options: {
      /**
       * Told of a report refused as unavailable although its COMMIT may have happened: its notification may wait
       * under our lease.
       */
      readonly onDoubtfulReport: (report: Report) => void;
      readonly onFlush?: GroupCommitOptions<Completion, Completed>["onFlush"];
    },
  ) {
    this.#engine = engine;
    const observe = options.onFlush ? { onFlush: options.onFlush } : {};
    this.#completions = new GroupCommit<Completion, Completed>({
      name: "complete",
      key: (completion) => `${completion.partnerId} ${completion.id}`,
      bytes: (completion) => bytesOf(completion.notification),
      commit: (completions) => this.#complete(completions),
      // The acquirer has answered: this is written, or another instance takes the command over.
      giveUpAfterMs: Number.POSITIVE_INFINITY,
      ...observe,
    });
    this.#reports = new GroupCommit<Report, Reported>({
      name: "report",
      key: (report) => `${report.partnerId} ${report.externalId}`,
      bytes: (report) => bytesOf(report.notification),
      commit: (reports) => this.#report(reports),
      giveUpAfterMs: 5_000,
      onDoubt: options.onDoubtfulReport,
      ...observe,
    });
  }

  complete(completion: Completion): Promise<Completed> {
    return this.#completions.add(completion);
  }

  report(report: Report): Promise<Reported> {
    return this.#reports.add(report);
  }

  async #complete(completions: readonly Completion[]): Promise<ReadonlyMap<string, Completed>> {
    const write = (client: PoolClient) =>
      client.query<At>({
        ...completeTransactions,
        values: [
          completions.map((completion) => completion.partnerId),
          completions.map((completion) => completion.id),
          completions.map((completion) => completion.state),
          jsonList(completions.map(({ notification, facts }) => notification?.content ?? JSON.stringify(facts))),
          completions.map((completion) => completion.notification?.id ?? null),
          completions.map((completion) => completion.instance.id),
          completions.map((completion) => completion.instance.epoch),
        ],
      });
    const applied = await this.#commitWith(completions, write, writeEffects);
    const missed = completions.filter((completion) => !applied.has(completion.id));
    const before = missed.length > 0 ? await this.#completedBefore(missed) : applied;
    return new Map(
      completions.map((completion) => {
        const at = applied.get(completion.id) ?? before.get(completion.id);
        const key = `${completion.partnerId} ${completion.id}`;
        return [key, at ? { outcome: "completed", atMs: at.getTime() } : { outcome: "late" }];
      }),
    );
  }

  async #completedBefore(completions: readonly Completion[]): Promise<ReadonlyMap<TransactionId, Date>> {
    const { rows } = await this.#engine.query<At & { notification_id: string | null; state: string }>({
      ...completedBefore,
      values: [completions.map((completion) => completion.partnerId), completions.map((completion) => completion.id)],
    });
    const own = new Map(completions.map((completion) => [completion.id, completion]));
    return new Map(
      rows
        .filter((row) => {
          const completion = own.get(row.id);
          if (completion === undefined || row.state !== completion.state) return false;
          return row.notification_id === (completion.notification?.id ?? null);
        })
        .map((row) => [row.id, row.at]),
    );
  }

  async #report(reports: readonly Report[]): Promise<ReadonlyMap<string, Reported>> {
    const inserted = await this.#commitWith(reports, (client) =>
      client.query<At>({
        ...insertReports,
        values: [
          reports.map((report) => report.partnerId),
          reports.map((report) => report.id),
          reports.map((report) => report.command),
          reports.map((report) => report.state),
          reports.map((report) => report.reqId),
          reports.map((report) => report.externalId),
          reports.map((report) => report.originalId),
          reports.map((report) => report.originalExternalId),
          reports.map((report) => report.chainId),
          reports.map((report) => report.callBackUrl),
          jsonList(reports.map(({ notification, facts }) => notification?.content ?? JSON.stringify(facts))),
          reports.map((report) => report.notification?.id ?? null),
        ],
      }),
    );
    const missed = reports.filter((report) => !inserted.has(report.id));
    const before = missed.length > 0 ? await this.#reportedBefore(missed) : new Map<string, ReportedRow>();
    return new Map(
      reports.map((report): [string, Reported] => {
        const key = `${report.partnerId} ${report.externalId}`;
        const at = inserted.get(report.id);
        if (at) return [key, { outcome: "accepted", id: report.id, atMs: at.getTime() }];
        const known = before.get(key);
        if (known === undefined) return [key, { outcome: "id_taken" }];
        if (isOwn(report, known)) return [key, { outcome: "accepted", id: report.id, atMs: known.at.getTime() }];
        return [key, { outcome: "duplicate", id: known.id }];
      }),
    );
  }

  async #reportedBefore(reports: readonly Report[]): Promise<ReadonlyMap<string, ReportedRow>> {
    const { rows } = await this.#engine.query<ReportedRow>({
      ...reportedBefore,
      values: [reports.map((report) => report.partnerId), reports.map((report) => report.externalId)],
    });
    return new Map(rows.map((row) => [`${row.partner_id} ${row.external_id}`, row]));
  }

  /** Runs one write of results and, for those that took effect, all that follows from them, in one transaction. */
  async #commitWith<Item extends { readonly id: TransactionId; readonly notification: NewNotification | null }>(
    items: readonly Item[],
    write: (client: PoolClient) => Promise<QueryResult<At>>,
    effects: (client: PoolClient, applied: readonly Item[]) => readonly Promise<unknown>[] = () => [],
  ): Promise<ReadonlyMap<TransactionId, Date>> {
    const client = await this.#engine.connect();
    try {
      const [, { rows }] = await Promise.all([client.query("BEGIN"), write(client)]);
      const applied = new Map(rows.map((row) => [row.id, row.at]));
      const effective = items.filter((item) => applied.has(item.id));
      const notifications = effective.flatMap((item) => (item.notification === null ? [] : [item.notification]));
      await Promise.all([
        ...effects(client, effective),
        notifications.length > 0 ? insert(client, notifications) : undefined,
        client.query("COMMIT").then(assertCommitted),
      ]);
      client.release();
      return applied;
    } catch (error) {
      client.release(true);
      throw error;
    }
  }
}

function insert(client: PoolClient, notifications: readonly NewNotification[]): Promise<QueryResult> {
  return client.query({
    ...insertNotifications,
    values: [
      notifications.map((notification) => notification.partnerId),
      notifications.map((notification) => notification.id),
      notifications.map((notification) => notification.transactionId),
      notifications.map((notification) => notification.originalId),
      notifications.map((notification) => notification.originalExternalId),
      notifications.map((notification) => notification.chainId),
      notifications.map((notification) => notification.command),
      notifications.map((notification) => notification.callBackUrl),
      jsonList(notifications.map((notification) => notification.content)),
      notifications.map((notification) => Buffer.byteLength(notification.content)),
      notifications.map((notification) => notification.lease?.id ?? null),
      notifications.map((notification) => notification.lease?.epoch ?? null),
      notifications.map(({ callBackUrl }) => (callBackUrl === null ? "" : new URL(callBackUrl).origin)),
      notifications.map((notification) => notification.follows),
      notifications.map((notification) => notification.settlesBatch),
    ],
  });
}

/**
 * Whether the row is that of this very report, whose COMMIT had happened after all. Its id does not tell: the switch
 * may give one, and gives the same at every repetition. Its notification's id is made anew for each report.
 */
function isOwn(report: Report, known: ReportedRow): boolean {
  return report.notification === null ? known.id === report.id : known.notification_id === report.notification.id;
}

/** A COMMIT sent behind a statement that failed answers ROLLBACK, without an error of its own. */
function assertCommitted(result: QueryResult): void {
  if (result.command !== "COMMIT") throw new Error("The transaction was rolled back.");
}

function bytesOf(notification: NewNotification | null): number {
  return notification === null ? 512 : notification.content.length + 512;
}

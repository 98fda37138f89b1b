import type { PartnerId, TransactionId } from "../../ids.ts";
import type { NewNotification } from "../../ledger/notifier.ts";
import type { Completion, ReportedCompletion } from "../../ledger/store.ts";
import { type ColumnList, Columns } from "../database/columns.ts";
import { prepared } from "../database/statement.ts";
import { searchable } from "../notifications/search.ts";

export interface At {
  readonly id: TransactionId;
  readonly at: Date;
}

export interface ReportedRow extends At {
  readonly partner_id: PartnerId;
  readonly external_id: string;
}

/** The MAC that shows the content to be as it was committed. */
export type MacOf = (notification: NewNotification) => Buffer | null;

// The columns of pending and history that come from the rows of `i`. A settlement belongs to no batch: `settles_batch`
// names the one that it waits for.
const historyColumns = `(partner_id, id, transaction_id, original_id, original_external_id, chain_id, command,
        callback_url, content, content_mac)`;
const pendingColumns = `(partner_id, id, chain_id, due_at, bytes, queue, follows, batch_id, settles_batch)`;
// A settlement is compared with the ledger later, so that reports that arrive shortly after it are included.
const comparedAt =
  "CASE WHEN command = 'SETTLEMENT' AND reported_batch IS NOT NULL THEN now() + interval '10 minutes' END";
const notifiedAt = "CASE WHEN waits THEN now() + interval '1 second' END";

const reportList = {
  partner_id: ["uuid", ({ partnerId }) => partnerId],
  transaction_id: ["uuid", ({ id }) => id],
  command: ["text", ({ command }) => command],
  state: ["text", ({ state }) => state],
  req_id: ["text", ({ reqId }) => reqId],
  external_id: ["text", ({ externalId }) => externalId],
  original_id: ["uuid", ({ originalId }) => originalId],
  original_external_id: ["text", ({ originalExternalId }) => originalExternalId],
  chain_id: ["uuid", ({ chainId }) => chainId],
  callback_url: ["text", ({ callBackUrl }) => callBackUrl],
  facts: ["json", contentOf],
  merchant_trans_id: ["text", ({ facts }) => searchable(facts.fields["merchantTransId"])],
  id: ["uuid", ({ notification }) => notification?.id ?? null],
  reported_batch: ["uuid", ({ batchId }) => batchId],
  // Its notification is created later.
  waits: ["boolean", ({ waitsForOriginal = false }) => waitsForOriginal],
} satisfies ColumnList<ReportedCompletion>;
/** The columns of a notification beside those of its result. */
const itsNotification = {
  bytes: ["integer", ({ notification }) => notification && Buffer.byteLength(notification.content)],
  queue: ["text", ({ notification }) => notification?.queue ?? ""],
  follows: ["boolean", ({ notification }) => notification?.follows ?? false],
  mac: ["bytes", ({ notification }, macOf) => notification && macOf(notification)],
} satisfies ColumnList<{ readonly notification: NewNotification | null }, MacOf>;

export const reports = new Columns<ReportedCompletion>(reportList);
export const reportsWhole = new Columns<ReportedCompletion, MacOf>({
  ...reportList,
  ...itsNotification,
  settles_batch: ["uuid", ({ notification }) => notification?.settlesBatch ?? null],
});

const insertTransactions = (rows: string) => `
      INSERT INTO transactions (partner_id, id, origin, command, state, req_id, external_id, original_id,
        original_external_id, chain_id, callback_url, facts, merchant_trans_id, notification_id, reported_batch,
        compare_at, notify_at, completed_at)
      SELECT partner_id, transaction_id, 'switch', command, state, req_id, external_id, original_id,
        original_external_id, chain_id, callback_url, facts, merchant_trans_id, id, reported_batch, ${comparedAt},
        ${notifiedAt}, now()
      FROM ${rows}`;

/**
 * Reports with all consequences, in one statement that is a transaction of its own. It fails as a whole if one of them
 * was reported before: that is rare, and the other way finds out which. Measured: it saves one of two round trips, and
 * sends the content once instead of twice.
 */
export const insertReportsInOneStatement = prepared<{ at: Date }>(`
  WITH result AS (${insertTransactions(
    reportsWhole.some(`
        partner_id, transaction_id, command, state, req_id, external_id, original_id, original_external_id,
        chain_id, callback_url, facts, merchant_trans_id, id, reported_batch, waits`),
  )}),
    history AS (
      INSERT INTO notifications ${historyColumns}
      SELECT partner_id, id, transaction_id, original_id, CASE WHEN original_id IS NULL THEN original_external_id END,
        chain_id, command, callback_url, facts, mac
      FROM ${reportsWhole.some(`
        partner_id, id, transaction_id, original_id, original_external_id, chain_id, command, callback_url,
        facts, waits, mac`)}
      WHERE id IS NOT NULL AND NOT waits),
    delivery AS (
      INSERT INTO pending ${pendingColumns}
      SELECT partner_id, id, chain_id, now(), bytes, queue, follows,
        CASE WHEN command <> 'SETTLEMENT' THEN reported_batch END, settles_batch
      FROM ${reportsWhole.some(`
        partner_id, id, chain_id, bytes, queue, follows, command, reported_batch, settles_batch, waits`)}
      WHERE id IS NOT NULL AND NOT waits)
    SELECT now() AS at`);

/** The transactions only: those reported before are left out, and recognized by their absence. */
export const insertReports = prepared<ReportedRow>(`${insertTransactions(reports.rows)}
  ON CONFLICT DO NOTHING
  RETURNING partner_id, external_id, created_at AS at`);

const completionList = {
  partner_id: ["uuid", ({ partnerId }) => partnerId],
  id: ["uuid", ({ id }) => id],
  state: ["text", ({ state }) => state],
  facts: ["json", contentOf],
  notification_id: ["uuid", ({ notification }) => notification?.id ?? null],
  lease_id: ["uuid", ({ leaseId }) => leaseId],
} satisfies ColumnList<Completion>;

export const completions = new Columns<Completion>(completionList);
export const completionsWhole = new Columns<Completion, MacOf>({ ...completionList, ...itsNotification });

// Only while the row is INIT under the same lease. Written so that no plan uses the index of transactions in flight
// instead of the key. Measured: a plan made on an empty table read all of a partner's INITs for each row of a batch.
const completed = `
      UPDATE transactions t SET state = i.state, facts = i.facts, notification_id = i.notification_id,
        completed_at = now(), lease_id = NULL
      FROM i
      WHERE t.partner_id = i.partner_id AND t.id = i.id
        AND t.state NOT IN ('SUCCESS', 'ERROR') AND t.lease_id = i.lease_id`;

/**
 * Completions without other consequences than their notification, in one statement that is a transaction of its own.
 */
export const completeInOneStatement = prepared<At>(`
  WITH i AS MATERIALIZED (
    SELECT * FROM ${completionsWhole.rows}),
  done AS (${completed}
    RETURNING t.partner_id, t.id AS transaction_id, t.completed_at, t.original_id, t.chain_id, t.command,
      t.callback_url, i.facts, i.notification_id AS id, i.bytes, i.queue, i.follows, t.batch_id, i.mac),
  history AS (
    INSERT INTO notifications ${historyColumns}
    SELECT partner_id, id, transaction_id, original_id, NULL, chain_id, command, callback_url, facts, mac
    FROM done WHERE id IS NOT NULL),
  delivery AS (
    INSERT INTO pending ${pendingColumns}
    SELECT partner_id, id, chain_id, now(), bytes, queue, follows, batch_id, NULL
    FROM done WHERE id IS NOT NULL)
  SELECT transaction_id AS id, completed_at AS at FROM done`);

export const completeTransactions = prepared<At & { readonly batch_id: string | null }>(`
  WITH i AS MATERIALIZED (
    SELECT * FROM ${completions.rows})
  ${completed}
  RETURNING t.id, t.completed_at AS at, t.batch_id`);

interface InBatch {
  readonly notification: NewNotification;
  /** Null: none. */
  readonly batchId: string | null;
}

export const notifications = new Columns<InBatch, MacOf>({
  partner_id: ["uuid", ({ notification }) => notification.partnerId],
  id: ["uuid", ({ notification }) => notification.id],
  transaction_id: ["uuid", ({ notification }) => notification.transactionId],
  original_id: ["uuid", ({ notification }) => notification.originalId],
  original_external_id: ["text", ({ notification }) => notification.originalExternalId],
  chain_id: ["uuid", ({ notification }) => notification.chainId],
  command: ["text", ({ notification }) => notification.command],
  callback_url: ["text", ({ notification }) => notification.callBackUrl],
  content: ["json", ({ notification }) => notification.content],
  batch_id: ["uuid", ({ batchId }) => batchId],
  settles_batch: ["uuid", ({ notification }) => notification.settlesBatch],
  ...itsNotification,
});

/** The notifications of transactions written before, in the same transaction. */
export const insertNotifications = prepared(`
  WITH history AS (
    INSERT INTO notifications ${historyColumns}
    SELECT partner_id, id, transaction_id, original_id, original_external_id, chain_id, command, callback_url,
      content, mac
    FROM ${notifications.some(`
        partner_id, id, transaction_id, original_id, original_external_id, chain_id, command, callback_url,
        content, mac`)})
    INSERT INTO pending ${pendingColumns}
    SELECT partner_id, id, chain_id, now(), bytes, queue, follows,
      CASE WHEN command <> 'SETTLEMENT' THEN batch_id END, settles_batch
    FROM ${notifications.some(`
        partner_id, id, chain_id, bytes, queue, follows, command, batch_id, settles_batch`)}`);

/** The text that the transaction stores and the notification sends. */
function contentOf({ notification, facts }: Pick<ReportedCompletion, "notification" | "facts">): string {
  return notification?.content ?? JSON.stringify(facts);
}

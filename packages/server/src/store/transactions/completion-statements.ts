import type { NewNotification } from "../../ledger/notifier.ts";
import type { Completion, ReportedCompletion } from "../../ledger/store.ts";
import { booleanArray, bytesArray, integerArray, jsonArray, textArray, uuidArray } from "../database/arrays.ts";
import { rowsOf } from "../database/parameter-rows.ts";
import { searchable } from "../notifications/searchable.ts";

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

const reportParameters = {
  partner_id: "$1::uuid[]",
  transaction_id: "$2::uuid[]",
  command: "$3::text[]",
  state: "$4::text[]",
  req_id: "$5::text[]",
  external_id: "$6::text[]",
  original_id: "$7::uuid[]",
  original_external_id: "$8::text[]",
  chain_id: "$9::uuid[]",
  callback_url: "$10::text[]",
  facts: "$11::json[]",
  merchant_trans_id: "$12::text[]",
  id: "$13::uuid[]",
  reported_batch: "$14::uuid[]",
  bytes: "$15::integer[]",
  queue: "$16::text[]",
  follows: "$17::boolean[]",
  settles_batch: "$18::uuid[]",
  waits: "$19::boolean[]",
  mac: "$20::bytea[]",
};
const reported = (names: string) => rowsOf(reportParameters, names);

/**
 * Reports with all consequences, in one statement that is a transaction of its own. It fails as a whole if one of them
 * was reported before: that is rare, and the other way finds out which. Measured: it saves one of two round trips, and
 * sends the content once instead of twice.
 */
export const insertReportsInOneStatement = {
  name: "insert_whole_reports",
  text: `
    WITH result AS (
      INSERT INTO transactions (partner_id, id, origin, command, state, req_id, external_id, original_id,
        original_external_id, chain_id, callback_url, facts, merchant_trans_id, notification_id, reported_batch,
        compare_at, notify_at, completed_at)
      SELECT partner_id, transaction_id, 'switch', command, state, req_id, external_id, original_id,
        original_external_id, chain_id, callback_url, facts, merchant_trans_id, id, reported_batch, ${comparedAt},
        ${notifiedAt}, now()
      FROM ${reported(`
        partner_id, transaction_id, command, state, req_id, external_id, original_id, original_external_id,
        chain_id, callback_url, facts, merchant_trans_id, id, reported_batch, waits`)} AS i),
    history AS (
      INSERT INTO notifications ${historyColumns}
      SELECT partner_id, id, transaction_id, original_id, CASE WHEN original_id IS NULL THEN original_external_id END,
        chain_id, command, callback_url, facts, mac
      FROM ${reported(`
        partner_id, id, transaction_id, original_id, original_external_id, chain_id, command, callback_url,
        facts, waits, mac`)} AS i
      WHERE id IS NOT NULL AND NOT waits),
    delivery AS (
      INSERT INTO pending ${pendingColumns}
      SELECT partner_id, id, chain_id, now(), bytes, queue, follows,
        CASE WHEN command <> 'SETTLEMENT' THEN reported_batch END, settles_batch
      FROM ${reported(`
        partner_id, id, chain_id, bytes, queue, follows, command, reported_batch, settles_batch, waits`)} AS i
      WHERE id IS NOT NULL AND NOT waits)
    SELECT now() AS at`,
};

export function oneStatementReportColumns(reports: readonly ReportedCompletion[], macOf: MacOf): unknown[] {
  return [
    ...reportColumns(reports),
    integerArray(reports.map(({ notification }) => notification && Buffer.byteLength(notification.content))),
    textArray(reports.map(({ notification }) => notification?.queue ?? "")),
    booleanArray(reports.map(({ notification }) => notification?.follows ?? false)),
    uuidArray(reports.map(({ notification }) => notification?.settlesBatch ?? null)),
    waitsColumn(reports),
    bytesArray(reports.map(({ notification }) => notification && macOf(notification))),
  ];
}

/** Marks those whose notification is created later. */
function waitsColumn(reports: readonly ReportedCompletion[]) {
  return booleanArray(reports.map(({ waitsForOriginal = false }) => waitsForOriginal));
}

/** The transactions only: those reported before are left out, and recognized by their absence. */
export const insertReports = {
  name: "insert_reports",
  text: `
    INSERT INTO transactions (partner_id, id, origin, command, state, req_id, external_id, original_id,
      original_external_id, chain_id, callback_url, facts, merchant_trans_id, notification_id, reported_batch,
      compare_at, notify_at, completed_at)
    SELECT partner_id, id, 'switch', command, state, req_id, external_id, original_id, original_external_id, chain_id,
      callback_url, facts, merchant_trans_id, notification_id, reported_batch, ${comparedAt}, ${notifiedAt},
      now()
    FROM unnest($1::uuid[], $2::uuid[], $3::text[], $4::text[], $5::text[], $6::text[], $7::uuid[], $8::text[],
      $9::uuid[], $10::text[], $11::json[], $12::text[], $13::uuid[], $14::uuid[], $15::boolean[])
      AS i (partner_id, id, command, state, req_id, external_id, original_id, original_external_id, chain_id,
        callback_url, facts, merchant_trans_id, notification_id, reported_batch, waits)
    ON CONFLICT DO NOTHING
    RETURNING partner_id, external_id, created_at AS at`,
};

export function onlyReportColumns(reports: readonly ReportedCompletion[]): unknown[] {
  return [...reportColumns(reports), waitsColumn(reports)];
}

function reportColumns(reports: readonly ReportedCompletion[]): unknown[] {
  return [
    uuidArray(reports.map((report) => report.partnerId)),
    uuidArray(reports.map((report) => report.id)),
    textArray(reports.map((report) => report.command)),
    textArray(reports.map((report) => report.state)),
    textArray(reports.map((report) => report.reqId)),
    textArray(reports.map((report) => report.externalId)),
    uuidArray(reports.map((report) => report.originalId)),
    textArray(reports.map((report) => report.originalExternalId)),
    uuidArray(reports.map((report) => report.chainId)),
    textArray(reports.map((report) => report.callBackUrl)),
    jsonArray(reports.map(contentOf)),
    textArray(reports.map(({ facts }) => searchable(facts.fields["merchantTransId"]))),
    uuidArray(reports.map((report) => report.notification?.id ?? null)),
    uuidArray(reports.map((report) => report.batchId)),
  ];
}

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
export const completeInOneStatement = {
  name: "complete_whole",
  text: `
    WITH i AS MATERIALIZED (
      SELECT * FROM unnest($1::uuid[], $2::uuid[], $3::text[], $4::json[], $5::uuid[],
        $6::uuid[], $7::integer[], $8::text[], $9::boolean[], $10::bytea[])
        AS i (partner_id, id, state, facts, notification_id, lease_id, bytes, queue, follows, mac)),
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
    SELECT transaction_id AS id, completed_at AS at FROM done`,
};

export function oneStatementCompletionColumns(completions: readonly Completion[], macOf: MacOf): unknown[] {
  return [
    ...completionColumns(completions),
    integerArray(completions.map(({ notification }) => notification && Buffer.byteLength(notification.content))),
    textArray(completions.map(({ notification }) => notification?.queue ?? "")),
    booleanArray(completions.map(({ notification }) => notification?.follows ?? false)),
    bytesArray(completions.map(({ notification }) => notification && macOf(notification))),
  ];
}

export const completeTransactions = {
  name: "complete_transactions",
  text: `
    WITH i AS MATERIALIZED (
      SELECT * FROM unnest($1::uuid[], $2::uuid[], $3::text[], $4::json[], $5::uuid[],
        $6::uuid[])
        AS i (partner_id, id, state, facts, notification_id, lease_id))
    ${completed}
    RETURNING t.id, t.completed_at AS at, t.batch_id`,
};

export function completionColumns(completions: readonly Completion[]): unknown[] {
  return [
    uuidArray(completions.map((completion) => completion.partnerId)),
    uuidArray(completions.map((completion) => completion.id)),
    textArray(completions.map((completion) => completion.state)),
    jsonArray(completions.map(contentOf)),
    uuidArray(completions.map((completion) => completion.notification?.id ?? null)),
    uuidArray(completions.map((completion) => completion.leaseId)),
  ];
}

const notificationParameters = {
  partner_id: "$1::uuid[]",
  id: "$2::uuid[]",
  transaction_id: "$3::uuid[]",
  original_id: "$4::uuid[]",
  original_external_id: "$5::text[]",
  chain_id: "$6::uuid[]",
  command: "$7::text[]",
  callback_url: "$8::text[]",
  content: "$9::json[]",
  bytes: "$10::integer[]",
  queue: "$11::text[]",
  follows: "$12::boolean[]",
  batch_id: "$13::uuid[]",
  settles_batch: "$14::uuid[]",
  mac: "$15::bytea[]",
};
const notified = (names: string) => rowsOf(notificationParameters, names);

/** The notifications of transactions written before, in the same transaction. */
export const insertNotifications = {
  name: "insert_notifications",
  text: `
    WITH history AS (
      INSERT INTO notifications ${historyColumns}
      SELECT partner_id, id, transaction_id, original_id, original_external_id, chain_id, command, callback_url,
        content, mac
      FROM ${notified(`
        partner_id, id, transaction_id, original_id, original_external_id, chain_id, command, callback_url,
        content, mac`)} AS i)
    INSERT INTO pending ${pendingColumns}
    SELECT partner_id, id, chain_id, now(), bytes, queue, follows,
      CASE WHEN command <> 'SETTLEMENT' THEN batch_id END, settles_batch
    FROM ${notified(`
        partner_id, id, chain_id, bytes, queue, follows, command, batch_id, settles_batch`)} AS i`,
};

/** @param batchIds the batch of each transaction; null: none */
export function notificationColumns(
  notifications: readonly NewNotification[],
  batchIds: readonly (string | null)[],
  macOf: MacOf,
): unknown[] {
  return [
    uuidArray(notifications.map((notification) => notification.partnerId)),
    uuidArray(notifications.map((notification) => notification.id)),
    uuidArray(notifications.map((notification) => notification.transactionId)),
    uuidArray(notifications.map((notification) => notification.originalId)),
    textArray(notifications.map((notification) => notification.originalExternalId)),
    uuidArray(notifications.map((notification) => notification.chainId)),
    textArray(notifications.map((notification) => notification.command)),
    textArray(notifications.map((notification) => notification.callBackUrl)),
    jsonArray(notifications.map((notification) => notification.content)),
    integerArray(notifications.map((notification) => Buffer.byteLength(notification.content))),
    textArray(notifications.map(({ queue }) => queue)),
    booleanArray(notifications.map((notification) => notification.follows)),
    uuidArray(batchIds),
    uuidArray(notifications.map((notification) => notification.settlesBatch)),
    bytesArray(notifications.map(macOf)),
  ];
}

/** The text that the transaction stores and the notification sends. */
function contentOf({ notification, facts }: Pick<ReportedCompletion, "notification" | "facts">): string {
  return notification?.content ?? JSON.stringify(facts);
}

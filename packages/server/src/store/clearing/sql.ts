import { cardCommands, chargingCommands } from "@paybell/contract";
import type { ClearingCandidate } from "../../clearing/match.ts";
import type { ClearingLine } from "../../clearing/read-file.ts";
import type { ClaimedFile, ClearingException, ClearingFile } from "../../clearing/store.ts";
import { planned } from "../database/statement.ts";
import { serviceId } from "../events.ts";
import {
  commandsInSql,
  isSlow,
  isUntimed,
  isVoided,
  isVoidedByReport,
  reversalOf,
} from "../transactions/conditions.ts";

export interface CandidateRow extends Omit<ClearingCandidate, "atMs"> {
  readonly nth: number;
  readonly completed_at: Date;
}
type WatchedRow = { acquirer: string; lastFileId: string; from: Date; to: Date; judged: Date };
type WaitingRow = { id: string; fileId: string; line: ClearingLine; due: Date };
export type FileRow = Omit<
  ClearingFile,
  "waiting" | "missingHere" | "missingThere" | "different" | "fees" | "chargebacks"
>;
type CountRow = { file_id: string; kind: string; is_waiting: boolean; count: number };

export const addChunk = planned("INSERT INTO clearing_chunks (file_id, chunk_no, lines) VALUES ($1, $2, $3)");

export const addFile = planned(`
  INSERT INTO clearing_files (id, acquirer, sha256, name, lines, chunks, totals, first_day)
  VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
  ON CONFLICT (acquirer, sha256) DO NOTHING`);

export const sameFile = planned<{ id: string }>("SELECT id FROM clearing_files WHERE acquirer = $1 AND sha256 = $2");

// One file of an acquirer after the other: a line of the second may be one of the first.
export const claim = planned<ClaimedFile>(`
  UPDATE clearing_files SET due_at = now() + $1 * interval '1 millisecond'
  WHERE id = (
    SELECT f.id FROM clearing_files f
    WHERE f.state = 'matching' AND f.due_at <= now() AND NOT EXISTS (
      SELECT FROM clearing_files e WHERE e.state = 'matching' AND e.acquirer = f.acquirer AND e.id < f.id)
    ORDER BY f.id LIMIT 1 FOR UPDATE SKIP LOCKED)
  RETURNING id, acquirer, to_char(first_day, 'YYYY-MM-DD') AS "firstDay", next_chunk AS "nextChunk", chunks`);

export const advance = planned(`
  UPDATE clearing_files SET next_chunk = next_chunk + 1, matched = matched + $3,
    due_at = now() + $4 * interval '1 millisecond'
  WHERE id = $1 AND next_chunk = $2 AND state = 'matching'`);

const completed = `
    SELECT t.partner_id, t.id, t.acquirer, t.facts, t.completed_at FROM transactions t
    WHERE t.partner_id = p.id AND t.acquirer = $1 AND t.completed_at >= $4 AND t.completed_at < $5
      AND t.command IN ${commandsInSql(cardCommands)}`;

// Six digits, as the reader of a file makes them: a switch reports its own.
const traceOf = `coalesce(
      CASE WHEN f."traceNo" ~ '^[0-9]{1,12}$' THEN right('00000' || f."traceNo", 6) ELSE f."traceNo" END, '')`;

// Partner by partner: those that completed soon by their ids, which begin with their time; then the slow ones, and
// those of a switch that assigns ids of its own. The facts are parsed once for each row, not once for each field. Citus
// inserts rows that are joined like this only from a query before.
export const copyBooks = planned(`
  WITH books AS MATERIALIZED (
    SELECT t.partner_id, t.id, t.acquirer, coalesce(f."refId", ''), ${traceOf}, coalesce(f.tid, ''),
      coalesce(f.amount, ''), coalesce(f.currency, ''), t.completed_at
    FROM partners p
    CROSS JOIN LATERAL (
      ${completed} AND t.id >= $2::uuid AND t.id < $3::uuid AND NOT (${isUntimed}) AND NOT (${isSlow})
      UNION ALL
      ${completed} AND ${isSlow}
      UNION ALL
      ${completed} AND t.created_at >= $4::timestamptz - interval '10 minutes' AND t.created_at < $5
        AND ${isUntimed} AND NOT (${isSlow})) AS t
    CROSS JOIN LATERAL json_to_record(t.facts -> 'fields')
      AS f ("refId" text, "traceNo" text, tid text, amount text, currency text))
  INSERT INTO clearing_books (partner_id, transaction_id, acquirer, ref_id, trace_no, tid, amount, currency,
    completed_at)
  SELECT * FROM books
  ON CONFLICT DO NOTHING`);

const candidate = `
  b.partner_id AS "partnerId", b.transaction_id AS id, t.notification_id AS "notificationId", t.command, t.state,
  ${reversalOf("t")} AS reversal, b.ref_id AS "refId", b.trace_no AS trace, b.amount, b.currency, b.completed_at,
  coalesce(t.facts #>> '{fields,transDateTime}', '') AS time,
  CASE WHEN t.state = 'ERROR' THEN t.facts #>> '{fields,isoResponseCode}' ELSE '00' END AS "isoResponseCode",
  (${isVoided} OR ${isVoidedByReport}) AS "isVoided"`;
const linesGiven = `
  unnest($2::integer[], $3::text[], $4::text[], $5::text[], $6::text[]) AS l (nth, ref_id, trace_no, tid, day)`;
// A limit keeps the order: from the line to its few candidates, each by a key. Measured: planned while the books were
// empty, a join read all of them for each line.
const ofTransaction = `
  CROSS JOIN LATERAL (
    SELECT * FROM transactions t WHERE t.partner_id = b.partner_id AND t.id = b.transaction_id LIMIT 1) AS t`;

export const candidatesByRef = `
  SELECT l.nth, ${candidate}
  FROM ${linesGiven}
  CROSS JOIN LATERAL (
    SELECT * FROM clearing_books b WHERE b.ref_id = l.ref_id AND b.ref_id <> '' AND b.acquirer = $1 LIMIT 20) AS b
  ${ofTransaction}`;

// A terminal uses a trace number again after 999,999 messages, and terminals share them.
export const candidatesByTrace = `
  SELECT l.nth, ${candidate}
  FROM ${linesGiven}
  CROSS JOIN LATERAL (
    SELECT * FROM clearing_books b
    WHERE b.trace_no = l.trace_no AND b.acquirer = $1 AND (l.tid = '' OR b.tid = l.tid)
      AND (l.day = 'infinity'
        OR b.completed_at BETWEEN l.day::timestamptz - interval '35 days' AND l.day::timestamptz + interval '3 days')
    ORDER BY b.completed_at DESC LIMIT 20) AS b
  ${ofTransaction}`;

export const match = planned<{ line_no: number }>(`
  INSERT INTO clearing_matches (partner_id, transaction_id, file_id, line_no)
  SELECT i.partner_id, i.transaction_id, $3, i.line_no
  FROM unnest($1::uuid[], $2::uuid[], $4::integer[]) AS i (partner_id, transaction_id, line_no)
  ON CONFLICT DO NOTHING
  RETURNING line_no`);

export const ownMatches = planned<{ line_no: number }>(`
  SELECT m.line_no FROM unnest($1::uuid[], $2::uuid[], $4::integer[]) AS i (partner_id, transaction_id, line_no)
  JOIN clearing_matches m ON m.partner_id = i.partner_id AND m.transaction_id = i.transaction_id
    AND m.file_id = $3 AND m.line_no = i.line_no`);

export const resolveFound = planned(`
  UPDATE clearing_entries e SET state = 'resolved', resolved_at = now(), reason = 'found in the file ' || f.file_id::text
  FROM clearing_entries o CROSS JOIN LATERAL (
    SELECT m.file_id FROM clearing_matches m WHERE m.partner_id = o.partner_id AND m.transaction_id = o.transaction_id
    UNION ALL
    SELECT d.file_id FROM clearing_entries d
    WHERE d.transaction_id = o.transaction_id AND d.partner_id = o.partner_id AND d.kind = 'different'
    LIMIT 1) AS f
  WHERE o.kind = 'missing_there' AND o.state = 'open' AND o.acquirer = $1 AND e.partner_id = o.partner_id AND e.id = o.id
    AND e.state = 'open'`);

export const insertEntries = planned<{ id: string }>(`
  INSERT INTO clearing_entries (partner_id, id, kind, state, acquirer, transaction_id, file_id, line_no, line,
    differences, proof, due_at)
  SELECT i.partner_id, i.id, i.kind, i.state, i.acquirer, i.transaction_id, i.file_id, i.line_no, i.line,
    i.differences, i.proof, i.due_at
  FROM jsonb_to_recordset($1::jsonb) AS i (partner_id uuid, id uuid, kind text, state text, acquirer text,
    transaction_id uuid, file_id uuid, line_no integer, line jsonb, differences jsonb, proof jsonb,
    due_at timestamptz)
  ON CONFLICT DO NOTHING
  RETURNING id`);

export const watched = planned<WatchedRow>(`
  SELECT w.acquirer, w.copied_from AS from, w.copied_to AS to, w.judged_to AS judged, (
    SELECT f.id FROM clearing_files f WHERE f.acquirer = w.acquirer ORDER BY f.id DESC LIMIT 1) AS "lastFileId"
  FROM clearing_acquirers w
  WHERE EXISTS (SELECT FROM clearing_files f WHERE f.acquirer = w.acquirer)`);

export const watch = planned(`
  INSERT INTO clearing_acquirers AS w (acquirer, copied_from, copied_to, judged_to)
  VALUES ($1, coalesce($2, now()), coalesce($3, now()), coalesce($4, now()))
  ON CONFLICT (acquirer) DO UPDATE SET copied_from = coalesce($2, w.copied_from),
    copied_to = coalesce($3, w.copied_to), judged_to = coalesce($4, w.judged_to)`);

// One that came to stand only after its days is judged by the time of that decision.
const judgedBooks = (at: string, joined = "") => `
    SELECT b.partner_id, b.transaction_id, b.acquirer, b.ref_id, b.trace_no, b.amount, b.currency, ${at} AS completed_at
    FROM clearing_books b ${joined}`;
const byDecision = "JOIN reversals r ON r.partner_id = b.partner_id AND r.transaction_id = b.transaction_id";
export const missing = planned<CandidateRow>(`
  SELECT 0 AS nth, ${candidate}
  FROM (${judgedBooks("b.completed_at")}
    UNION ALL ${judgedBooks("r.stood_at", byDecision)}) AS b ${ofTransaction}
  WHERE b.acquirer = $1 AND b.completed_at >= $2 AND b.completed_at < $3 AND t.state = 'SUCCESS'
    AND t.command IN ${commandsInSql([...chargingCommands, "REFUND"])} AND coalesce(${reversalOf("t")}, 'stands') = 'stands'
    AND NOT ${isVoided} AND NOT ${isVoidedByReport}
    AND NOT EXISTS (
      SELECT FROM clearing_matches m WHERE m.partner_id = b.partner_id AND m.transaction_id = b.transaction_id)
    AND NOT EXISTS (
      SELECT FROM clearing_entries e WHERE e.transaction_id = b.transaction_id AND e.partner_id = b.partner_id
        AND e.kind IN ('missing_there', 'different'))
  ORDER BY b.completed_at LIMIT $4`);

export const waiting = planned<WaitingRow>(`
  SELECT e.id, e.file_id AS "fileId", e.line, e.due_at AS due FROM clearing_entries e
  WHERE e.partner_id = '${serviceId}' AND e.state = 'waiting' AND e.acquirer = $1 AND e.id > $2::uuid
  ORDER BY e.id LIMIT $3`);

export const openWaiting = planned<{ id: string }>(`
  UPDATE clearing_entries SET state = 'open' WHERE partner_id = $1 AND id = ANY ($2::uuid[]) AND state = 'waiting'
  RETURNING id`);

const fileColumns = `
  f.id, f.acquirer, f.name, f.state, f.received_at AS "receivedAt", f.done_at AS "doneAt", f.lines, f.totals,
  f.matched FROM clearing_files f`;
export const file = planned<FileRow>(`SELECT ${fileColumns} WHERE f.id = $1`);
export const files = planned<FileRow>(`
  SELECT ${fileColumns} WHERE ($1::text IS NULL OR f.acquirer = $1) AND f.id < $2::uuid ORDER BY f.id DESC LIMIT $3`);

export const counts = planned<CountRow>(`
  SELECT e.file_id, e.kind, e.state = 'waiting' AS is_waiting, count(*)::integer AS count
  FROM clearing_entries e WHERE e.file_id = ANY ($1::uuid[]) GROUP BY 1, 2, 3`);

const exceptionColumns = `
  e.id, e.kind, e.state, e.acquirer, nullif(e.partner_id, '${serviceId}') AS "partnerId",
  e.transaction_id AS "transactionId", t.notification_id AS "notificationId", t.here, e.file_id AS "fileId", e.line,
  e.differences, e.reason, e.created_at AS "createdAt", e.resolved_at AS "resolvedAt"`;
const exceptionTransaction = `
  LEFT JOIN LATERAL (
    SELECT t.notification_id, (
      SELECT to_json(f) FROM (SELECT coalesce("refId", '') AS "refId", coalesce("traceNo", '') AS "traceNo",
          coalesce(tid, '') AS tid, coalesce(amount, '') AS amount, coalesce(currency, '') AS currency
        FROM json_to_record(t.facts -> 'fields')
          AS f ("refId" text, "traceNo" text, tid text, amount text, currency text)) AS f) AS here
    FROM transactions t WHERE t.partner_id = e.partner_id AND t.id = e.transaction_id LIMIT 1) AS t ON true`;

export const exceptions = planned<ClearingException>(`
  SELECT ${exceptionColumns}, NULL AS proof FROM clearing_entries e ${exceptionTransaction}
  WHERE e.state IN ('open', 'resolved') AND ($1::text IS NULL OR e.state = $1)
    AND ($2::text IS NULL OR e.acquirer = $2) AND e.id < $3::uuid
    AND ($5::uuid IS NULL OR e.transaction_id = $5) AND ($6::uuid IS NULL OR e.file_id = $6)
  ORDER BY e.id DESC LIMIT $4`);

export const exception = planned<ClearingException>(`
  SELECT ${exceptionColumns}, e.proof FROM clearing_entries e ${exceptionTransaction}
  WHERE e.id = $1 AND e.state IN ('open', 'resolved')`);

export const resolve = planned<{ id: string }>(`
  UPDATE clearing_entries SET state = 'resolved', reason = $2, resolved_at = now()
  WHERE id = $1 AND state = 'open'
  RETURNING id`);

export const dropUnfinished = planned(`
  DELETE FROM clearing_chunks c WHERE c.read_at < now() - interval '1 day'
    AND NOT EXISTS (SELECT FROM clearing_files f WHERE f.id = c.file_id)`);

export const dropOldOfHome = [
  "DELETE FROM clearing_books WHERE completed_at < $1",
  `DELETE FROM clearing_matches m WHERE NOT EXISTS (
     SELECT FROM clearing_books b WHERE b.partner_id = m.partner_id AND b.transaction_id = m.transaction_id)
     AND $1::timestamptz IS NOT NULL`,
  "DELETE FROM clearing_entries WHERE state IN ('resolved', 'kept') AND coalesce(resolved_at, created_at) < $1",
].map((text) => planned(text));

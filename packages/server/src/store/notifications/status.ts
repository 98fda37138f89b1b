import type { NotifiedCommand } from "@paybell/contract";
import type { Pool } from "pg";
import type { FailureReason } from "../../delivery/store.ts";
import type { LeaseId, NotificationId, PartnerId, TransactionId } from "../../ids.ts";
import type {
  NotificationKey,
  NotificationState,
  NotificationStatus,
  ParkedReason,
  RecordedAttempt,
  WaitsFor,
} from "../../notifications/store.ts";
import { queryAlongIndexes } from "../database/along-indexes.ts";

// A notification that waits for an open circuit is due at its next probe; one that waits for a URL that is gone, or for
// an inactive partner, has no time. One statement, and so one snapshot: with separate reads a notification that moves
// from parked to pending would be in neither, and look accepted. A settlement with thousands of entries is not read:
// that would be megabytes for one line.
const readBytesMax = 65_536;
const standings = `
  SELECT k.partner_id, k.id,
    coalesce(n.transaction_id, (d.notification ->> 'transaction_id')::uuid) AS transaction_id,
    coalesce(n.command, d.notification ->> 'command') AS command,
    coalesce(n.callback_url, d.notification ->> 'callback_url') AS callback_url,
    coalesce(n.created_at, (d.notification ->> 'created_at')::timestamptz) AS created_at,
    CASE WHEN p.id IS NOT NULL THEN 'pending' WHEN d.id IS NOT NULL THEN 'parked' ELSE 'accepted' END AS state,
    coalesce(p.attempts_made, d.attempts_made, taken.attempt_no, 0) AS attempts_made,
    CASE
      WHEN target.partner_state IS DISTINCT FROM 'active' OR target.is_gone THEN NULL
      ELSE greatest(p.due_at, target.probe_at) END AS next_attempt_at,
    CASE WHEN p.id IS NOT NULL THEN last.reason WHEN d.id IS NOT NULL THEN d.reason END AS last_reason,
    CASE WHEN p.id IS NULL THEN coalesce(d.parked_at, taken.ended_at) END AS outcome_at,
    CASE
      WHEN target.partner_state <> 'active' THEN 'partner_' || target.partner_state
      WHEN target.is_gone THEN 'endpoint_gone'
      WHEN target.probe_at IS NOT NULL THEN 'endpoint_open' END AS waits_for,
    (SELECT a.settings ->> 'name' FROM partners a WHERE a.id = k.partner_id) AS partner_name,
    coalesce(c.content #>> '{fields,amount}', c.content #>> '{fields,totalAmount}') AS amount,
    c.content #>> '{fields,currency}' AS currency,
    c.content #>> '{fields,merchantTransId}' AS merchant_trans_id
  FROM unnest($1::uuid[], $2::uuid[]) WITH ORDINALITY AS k (partner_id, id, place)
  LEFT JOIN LATERAL (
    SELECT n.id, n.transaction_id, n.command, n.callback_url, n.created_at,
      CASE WHEN pg_column_size(n.content) <= ${readBytesMax} THEN n.content END AS content
    FROM notifications n
    WHERE n.partner_id = k.partner_id AND n.id = k.id AND n.id BETWEEN $3 AND $4 LIMIT 1) AS n ON true
  LEFT JOIN LATERAL (
    SELECT p.id, p.attempts_made, p.queue, p.due_at FROM pending p
    WHERE p.partner_id = k.partner_id AND p.id = k.id LIMIT 1) AS p ON true
  LEFT JOIN LATERAL (
    SELECT a.state AS partner_state,
      (SELECT e.probe_at FROM endpoints e WHERE e.partner_id = a.id AND e.state = 'open'
        AND e.queue = CASE p.queue WHEN '' THEN a.registered_origin ELSE split_part(p.queue, ' ', 1) END) AS probe_at,
      EXISTS (SELECT FROM endpoints g WHERE g.partner_id = a.id AND g.state = 'gone' AND g.queue = CASE p.queue
        WHEN '' THEN a.registered_origin || ' '
          || encode(sha256(convert_to(a.settings ->> 'callBackUrl', 'UTF8')), 'hex')
        ELSE p.queue END) AS is_gone
    FROM partners a WHERE a.id = k.partner_id AND p.id IS NOT NULL) AS target ON true
  LEFT JOIN LATERAL (
    SELECT d.id, d.attempts_made, d.reason, d.parked_at, d.notification FROM parked d
    WHERE d.partner_id = k.partner_id AND d.id = k.id LIMIT 1) AS d ON true
  LEFT JOIN LATERAL (
    SELECT a.reason FROM attempts a
    WHERE a.partner_id = k.partner_id AND a.id = k.id AND a.id BETWEEN $3 AND $4
    ORDER BY a.round DESC, a.attempt_no DESC, a.lease_id DESC LIMIT 1) AS last ON true
  LEFT JOIN LATERAL (
    SELECT a.attempt_no, a.started_at + a.duration_ms * interval '1 millisecond' AS ended_at FROM attempts a
    WHERE a.partner_id = k.partner_id AND a.id = k.id AND a.id BETWEEN $3 AND $4
    ORDER BY a.reason IS NULL DESC, a.round DESC, a.attempt_no DESC, a.lease_id DESC LIMIT 1) AS taken ON true
  LEFT JOIN LATERAL (
    SELECT coalesce(n.content, CASE WHEN length(d.notification ->> 'content') <= ${readBytesMax}
      THEN (d.notification ->> 'content')::json END) AS content) AS c ON true
  WHERE n.id IS NOT NULL OR d.notification IS NOT NULL
  ORDER BY k.place`;

// Numbered across redeliveries, as people count them; a row's own number restarts in each round.
const attempts = `
  SELECT * FROM (
    SELECT row_number() OVER (ORDER BY a.round, a.attempt_no, a.lease_id) AS attempt_no, count(*) OVER () AS attempts,
      a.started_at, a.duration_ms, a.url, a.address, a.http_status, a.reason, a.detail, a.answer, a.key_id, a.lease_id
    FROM attempts a WHERE a.partner_id = $1 AND a.id = $2) AS numbered
  WHERE attempt_no > attempts - $3 ORDER BY attempt_no`;

interface StatusRow {
  readonly partner_id: PartnerId;
  readonly id: NotificationId;
  readonly transaction_id: TransactionId | null;
  readonly command: NotifiedCommand;
  readonly callback_url: string | null;
  readonly created_at: Date;
  readonly state: NotificationState;
  readonly attempts_made: number;
  readonly next_attempt_at: Date | null;
  readonly last_reason: ParkedReason | null;
  readonly outcome_at: Date | null;
  readonly waits_for: WaitsFor | null;
  readonly partner_name: string | null;
  readonly amount: string | null;
  readonly currency: string | null;
  readonly merchant_trans_id: string | null;
}

interface AttemptRow {
  readonly attempt_no: number;
  readonly started_at: Date;
  readonly duration_ms: number;
  readonly url: string;
  readonly address: string | null;
  readonly http_status: number | null;
  readonly reason: FailureReason | null;
  readonly detail: string | null;
  readonly answer: Buffer | null;
  readonly key_id: string | null;
  readonly lease_id: LeaseId;
}

export async function readStatuses(
  pool: Pool,
  keys: readonly NotificationKey[],
): Promise<readonly NotificationStatus[]> {
  if (keys.length === 0) return [];
  const ids = keys.map((key) => key.id);
  const sorted = [...ids].sort();
  const values = [keys.map((key) => key.partnerId), ids, sorted[0], sorted.at(-1)];
  const { rows } = await queryAlongIndexes<StatusRow>(pool, standings, values);
  return rows.map((row) => ({
    partnerId: row.partner_id,
    id: row.id,
    transactionId: row.transaction_id,
    command: row.command,
    callBackUrl: row.callback_url,
    createdAtMs: row.created_at.getTime(),
    state: row.state,
    attemptsMade: row.attempts_made,
    nextAttemptAtMs: row.next_attempt_at?.getTime() ?? null,
    lastReason: row.last_reason,
    outcomeAtMs: row.outcome_at?.getTime() ?? null,
    waitsFor: row.waits_for,
    partnerName: row.partner_name ?? "",
    amount: row.amount,
    currency: row.currency,
    merchantTransId: row.merchant_trans_id,
  }));
}

export async function readAttempts(
  pool: Pool,
  key: NotificationKey,
  rowsMax: number,
): Promise<readonly RecordedAttempt[]> {
  const { rows } = await queryAlongIndexes<AttemptRow>(pool, attempts, [key.partnerId, key.id, rowsMax]);
  return rows.map((row) => ({
    attemptNo: row.attempt_no,
    startedAtMs: row.started_at.getTime(),
    durationMs: row.duration_ms,
    url: row.url,
    address: row.address,
    httpStatus: row.http_status,
    reason: row.reason,
    detail: row.detail,
    answer: row.answer,
    keyId: row.key_id,
    instanceId: row.lease_id,
  }));
}

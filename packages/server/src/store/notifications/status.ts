import type { Pool } from "pg";
import { lowestId, type NotificationId, type PartnerId } from "../../ids.ts";
import type {
  KeyUse,
  NotificationKey,
  NotificationStatus,
  NotificationSubject,
  RecordedAttempt,
  RunningSchedule,
  SubjectMatch,
  WaitingFor,
} from "../../notifications/store.ts";
import { epochMs, queryAlongIndexes } from "../database/along-indexes.ts";
import { earlierThan } from "../deliveries/read.ts";

/**
 * The endpoint of the pending notification `p` of the partner `a`, as `e`, unless its circuit is closed: of a registered
 * URL that is gone at a tripped origin the URL, because no probe is sent to it.
 */
export const itsEndpoint = `
  CROSS JOIN LATERAL (
    SELECT coalesce(a.registered_routes -> p.queue ->> 'origin', a.registered_origin) AS origin,
      coalesce(a.settings -> 'callBackUrlByCommand' ->> p.queue, a.settings ->> 'callBackUrl') AS url) AS r
  LEFT JOIN LATERAL (
    SELECT e.* FROM endpoints e
    WHERE e.partner_id = p.partner_id AND e.state <> 'closed' AND e.queue = ANY (CASE
      WHEN p.queue LIKE '%://%' THEN ARRAY[split_part(p.queue, ' ', 1)]
      ELSE ARRAY[r.origin, r.origin || ' ' || encode(sha256(convert_to(r.url, 'UTF8')), 'hex')] END)
    ORDER BY e.state = 'gone' DESC LIMIT 1) AS e ON true`;

// Attempts are those of all schedules, up to the accepted one, as long as history has them.
// One statement, and so one snapshot: with separate reads a notification that moves from parked to pending would be in
// neither, and look accepted.
const statuses = `
  SELECT k.partner_id AS "partnerId", k.id,
    coalesce(n.transaction_id, (d.notification ->> 'transaction_id')::uuid) AS "transactionId",
    coalesce(n.command, d.notification ->> 'command') AS command,
    coalesce(n.callback_url, d.notification ->> 'callback_url') AS "callBackUrl",
    ${epochMs("coalesce(n.created_at, (d.notification ->> 'created_at')::timestamptz)")} AS "createdAtMs",
    CASE WHEN p.id IS NOT NULL THEN 'pending' WHEN d.id IS NOT NULL THEN 'parked' ELSE 'accepted' END AS state,
    greatest(made.attempts, p.attempts_made, d.attempts_made) AS "attemptsMade",
    CASE WHEN p.id IS NOT NULL THEN last.reason WHEN d.id IS NOT NULL THEN d.reason END AS "lastReason",
    CASE WHEN p.id IS NOT NULL OR d.reason = last.reason THEN last.http_status END AS "lastHttpStatus",
    CASE WHEN p.id IS NULL THEN ${epochMs("coalesce(d.parked_at, taken.ended_at)")} END AS "outcomeAtMs",
    coalesce(a.settings ->> 'name', '') AS "partnerName",
    CASE WHEN p.id IS NOT NULL THEN json_build_object(
      'dueMs', ${epochMs("p.due_at")}, 'startMs', ${epochMs("p.schedule_start")},
      'stepsMade', p.attempts_made + 1 - p.asked - p.is_asked::integer,
      'partnerState', a.state, 'partnerSinceMs', ${epochMs("coalesce(a.stopped_at, a.updated_at)")},
      'after', ${earlierThan("p")}, 'endpointState', e.state, 'probeMs', ${epochMs("e.probe_at")},
      'endpoint', json_build_object('endpointId', e.id, 'target', e.target, 'reason', e.last_reason)) END AS pending
  FROM unnest($1::uuid[], $2::uuid[]) WITH ORDINALITY AS k (partner_id, id, place)
  LEFT JOIN LATERAL (SELECT a.* FROM partners a WHERE a.id = k.partner_id LIMIT 1) AS a ON true
  LEFT JOIN LATERAL (
    SELECT n.id, n.transaction_id, n.command, n.callback_url, n.created_at FROM notifications n
    WHERE n.partner_id = k.partner_id AND n.id = k.id AND n.id BETWEEN $3 AND $4 LIMIT 1) AS n ON true
  LEFT JOIN LATERAL (
    SELECT p.* FROM pending p WHERE p.partner_id = k.partner_id AND p.id = k.id LIMIT 1) AS p ON true
  ${itsEndpoint}
  LEFT JOIN LATERAL (
    SELECT d.id, d.attempts_made, d.reason, d.parked_at, d.notification FROM parked d
    WHERE d.partner_id = k.partner_id AND d.id = k.id LIMIT 1) AS d ON true
  LEFT JOIN LATERAL (
    SELECT a.reason, a.http_status FROM attempts a
    WHERE a.partner_id = k.partner_id AND a.id = k.id AND a.id BETWEEN $3 AND $4
    ORDER BY a.round DESC, a.attempt_no DESC, a.lease_id DESC LIMIT 1) AS last ON true
  LEFT JOIN LATERAL (
    SELECT a.round, a.attempt_no, a.lease_id, a.started_at + a.duration_ms * interval '1 millisecond' AS ended_at
    FROM attempts a
    WHERE a.partner_id = k.partner_id AND a.id = k.id AND a.id BETWEEN $3 AND $4
    ORDER BY a.reason IS NULL DESC, a.round DESC, a.attempt_no DESC, a.lease_id DESC LIMIT 1) AS taken ON true
  CROSS JOIN LATERAL (
    SELECT count(*)::integer AS attempts FROM attempts a
    WHERE a.partner_id = k.partner_id AND a.id = k.id AND a.id BETWEEN $3 AND $4
      AND (p.id IS NOT NULL OR d.id IS NOT NULL
        OR (a.round, a.attempt_no, a.lease_id) <= (taken.round, taken.attempt_no, taken.lease_id))) AS made
  WHERE n.id IS NOT NULL OR d.notification IS NOT NULL
  ORDER BY k.place`;

// Numbered across redeliveries, as people count them; a row's own number restarts in each round.
const attempts = `
  SELECT a.no AS "attemptNo", ${epochMs("a.started_at")} AS "startedAtMs", a.duration_ms AS "durationMs", a.url, a.address,
    a.http_status AS "httpStatus", a.reason, a.detail, a.answer, a.key_id AS "keyId", a.lease_id AS "instanceId"
  FROM (
    SELECT row_number() OVER (ORDER BY a.round, a.attempt_no, a.lease_id) AS no, count(*) OVER () AS attempts,
      a.started_at, a.duration_ms, a.url, a.address, a.http_status, a.reason, a.detail, a.answer, a.key_id, a.lease_id
    FROM attempts a WHERE a.partner_id = $1 AND a.id = $2) AS a
  WHERE a.no > a.attempts - $3 ORDER BY a.no`;

const keyUse = `
  SELECT a.key_id AS "keyId", count(*) FILTER (WHERE a.reason IS NULL)::integer AS accepted,
    count(*) FILTER (WHERE a.reason IS NOT NULL)::integer AS failed,
    extract(epoch FROM max(a.started_at) FILTER (WHERE a.reason IS NULL))::float8 * 1000 AS "lastAcceptedAtMs"
  FROM (
    SELECT a.key_id, a.reason, a.started_at FROM attempts a
    WHERE a.partner_id = $1 AND a.id >= $2::uuid ORDER BY a.id DESC LIMIT $3) AS a
  WHERE a.key_id IS NOT NULL GROUP BY a.key_id`;

interface StatusRow extends Omit<NotificationStatus, "waiting" | "schedule"> {
  /** Null unless it is pending. */
  readonly pending: PendingRow | null;
}

interface PendingRow extends RunningSchedule {
  readonly dueMs: number;
  readonly partnerState: "active" | "paused" | "disabled" | null;
  readonly partnerSinceMs: number | null;
  readonly after: NotificationId | null;
  /** Null: its endpoint accepts. */
  readonly endpointState: "open" | "gone" | null;
  readonly probeMs: number | null;
  readonly endpoint: Pick<Extract<WaitingFor, { readonly because: "circuit" }>, "endpointId" | "target" | "reason">;
}

export async function readStatuses(
  pool: Pool,
  keys: readonly NotificationKey[],
): Promise<readonly NotificationStatus[]> {
  if (keys.length === 0) return [];
  const rows = await queryAlongIndexes<StatusRow>(pool, statuses, boundsOf(keys));
  return rows.map(({ pending, ...status }) => {
    if (pending === null) return { ...status, waiting: null, schedule: null };
    const { startMs, stepsMade } = pending;
    return { ...status, waiting: waitingFor(pending, status.attemptsMade), schedule: { startMs, stepsMade } };
  });
}

function waitingFor(pending: PendingRow, attemptsMade: number): WaitingFor {
  const { dueMs: untilMs, partnerState, partnerSinceMs, after, endpointState, endpoint, probeMs } = pending;
  if (partnerState !== null && partnerState !== "active") {
    return { because: partnerState, sinceMs: partnerSinceMs ?? untilMs, untilMs: null };
  }
  // Before its endpoint: no probe sends it, and neither does a closed circuit.
  if (after !== null) return { because: "order", after, untilMs };
  if (endpointState === "gone") return { because: "gone", ...endpoint, untilMs: null };
  if (endpointState === "open") {
    return { because: "circuit", ...endpoint, untilMs: Math.max(probeMs ?? 0, untilMs) };
  }
  return { because: attemptsMade > 0 && untilMs > Date.now() ? "retry" : "turn", untilMs };
}

export async function readKeyUse(
  pool: Pool,
  partnerId: PartnerId,
  sinceMs: number,
  rowsMax: number,
): Promise<readonly KeyUse[]> {
  return await queryAlongIndexes<KeyUse>(pool, keyUse, [partnerId, lowestId(sinceMs), rowsMax]);
}

export async function readAttempts(
  pool: Pool,
  key: NotificationKey,
  rowsMax: number,
): Promise<readonly RecordedAttempt[]> {
  return await queryAlongIndexes<RecordedAttempt>(pool, attempts, [key.partnerId, key.id, rowsMax]);
}

// A notification that outlived its day of history is in parked.
const withContent = (content: string) => `
  FROM unnest($1::uuid[], $2::uuid[]) WITH ORDINALITY AS k (partner_id, id, place)
  LEFT JOIN LATERAL (
    SELECT n.id, n.command, ${content} AS content FROM notifications n
    WHERE n.partner_id = k.partner_id AND n.id = k.id AND n.id BETWEEN $3 AND $4 LIMIT 1) AS n ON true
  LEFT JOIN LATERAL (
    SELECT d.notification ->> 'command' AS command, (d.notification ->> 'content')::json AS content FROM parked d
    WHERE n.id IS NULL AND d.partner_id = k.partner_id AND d.id = k.id LIMIT 1) AS d ON true
  CROSS JOIN LATERAL (
    SELECT coalesce(n.command, d.command) AS command, coalesce(n.content, d.content) AS content OFFSET 0) AS c
  CROSS JOIN LATERAL (SELECT c.content -> 'fields' AS fields OFFSET 0) AS f`;

const subjects = `
  SELECT k.partner_id AS "partnerId", k.id, f.fields ->> 'merchantTransId' AS "merchantTransId",
    coalesce(f.fields ->> 'amount', f.fields ->> 'totalAmount') AS amount,
    coalesce(f.fields ->> 'currency', c.content ->> 'currency') AS currency,
    f.fields ->> 'tid' AS tid, f.fields ->> 'mid' AS mid, f.fields ->> 'merchantName' AS "merchantName",
    f.fields ->> 'refId' AS "refId", f.fields ->> 'approveCode' AS "approveCode",
    f.fields ->> 'isoResponseCode' AS "isoResponseCode", f.fields ->> 'reqId' AS "reqId",
    right(f.fields ->> 'cardNumber', 4) AS "lastFour"
  ${withContent("CASE WHEN pg_column_size(n.content) <= $5 THEN n.content END")}
  ORDER BY k.place`;

const matching = `
  SELECT k.partner_id AS "partnerId", k.id ${withContent("n.content")}
  WHERE ($5::text IS NULL OR c.command = $5) AND ($6::text IS NULL OR f.fields ->> 'tid' = $6)
    AND ($7::text IS NULL OR f.fields ->> 'mid' = $7) AND ($8::text IS NULL OR f.fields ->> 'refId' = $8)
    AND ($9::text IS NULL OR f.fields ->> 'approveCode' = $9) AND ($10::text IS NULL OR f.fields ->> 'billId' = $10)
    AND ($11::text IS NULL OR right(f.fields ->> 'cardNumber', 4) = $11)
    AND ($12::text IS NULL OR position(lower($12) IN lower(f.fields ->> 'merchantTransId')) > 0)
    AND ($13::text IS NULL OR ($13 = 'approved') = (f.fields ->> 'isoResponseCode' = '00'))
    AND (($14::numeric IS NULL AND $15::numeric IS NULL) OR (CASE
      WHEN coalesce(f.fields ->> 'amount', f.fields ->> 'totalAmount') ~ '^[0-9]{1,20}([.][0-9]{1,6})?$'
      THEN coalesce(f.fields ->> 'amount', f.fields ->> 'totalAmount')::numeric
        BETWEEN coalesce($14::numeric, 0) AND coalesce($15::numeric, 'Infinity') END))
    AND ($16::text IS NULL OR f.fields ->> 'merchantTransId' = $16)
    AND ($17::text IS NULL OR starts_with(f.fields ->> 'merchantTransId', $17))
  ORDER BY k.place`;

// A settlement with thousands of entries is not read for a list: that would be megabytes for one line.
const listedBytesMax = 65_536;
const wholeBytesMax = 2 ** 31 - 1;

export async function readSubjects(
  pool: Pool,
  keys: readonly NotificationKey[],
): Promise<ReadonlyMap<NotificationId, NotificationSubject>> {
  if (keys.length === 0) return new Map();
  const bytesMax = keys.length === 1 ? wholeBytesMax : listedBytesMax;
  const rows = await queryAlongIndexes<Row>(pool, subjects, [...boundsOf(keys), bytesMax]);
  return new Map(rows.map(({ partnerId: _, id, ...subject }) => [id, subject]));
}

/** The keys whose content matches, in order. */
export async function readMatching(
  pool: Pool,
  keys: readonly NotificationKey[],
  match: SubjectMatch,
): Promise<readonly NotificationKey[]> {
  if (keys.length === 0) return [];
  const { command, tid, mid, refId, approveCode, billId, lastFour, contains, result, amountFrom, amountTo } = match;
  const texts = [command, tid, mid, refId, approveCode, billId, lastFour, contains, result, amountFrom, amountTo];
  const wanted = [...texts, match.merchantTransId, match.beginning].map((value) => value ?? null);
  return await queryAlongIndexes<NotificationKey>(pool, matching, [...boundsOf(keys), ...wanted]);
}

interface Row extends NotificationSubject {
  readonly partnerId: PartnerId;
  readonly id: NotificationId;
}

function boundsOf(keys: readonly NotificationKey[]): unknown[] {
  const ids = keys.map((key) => key.id);
  const sorted = [...ids].sort();
  return [keys.map((key) => key.partnerId), ids, sorted[0], sorted.at(-1)];
}

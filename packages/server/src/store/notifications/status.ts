import type { NotifiedCommand } from "@paybell/contract";
import type { Pool } from "pg";
import type { FailureReason } from "../../delivery/delivery.ts";
import { type LeaseId, lowestId, type NotificationId, type PartnerId, type TransactionId } from "../../ids.ts";
import type { NotificationState } from "../../notification-state.ts";
import type {
  KeyUse,
  NotificationKey,
  NotificationStatus,
  NotificationSubject,
  ParkedReason,
  RecordedAttempt,
  RunningSchedule,
  SubjectMatch,
  WaitingFor,
} from "../../notifications/store.ts";
import { queryAlongIndexes } from "../database/along-indexes.ts";
import { earlierThan } from "../deliveries/read.ts";

// Attempts are those of all schedules, up to the accepted one, as long as history has them.
// One statement, and so one snapshot: with separate reads a notification that moves from parked to pending would be in
// neither, and look accepted.
const standings = `
  SELECT k.partner_id, k.id,
    coalesce(n.transaction_id, (d.notification ->> 'transaction_id')::uuid) AS transaction_id,
    coalesce(n.command, d.notification ->> 'command') AS command,
    coalesce(n.callback_url, d.notification ->> 'callback_url') AS callback_url,
    coalesce(n.created_at, (d.notification ->> 'created_at')::timestamptz) AS created_at,
    CASE WHEN p.id IS NOT NULL THEN 'pending' WHEN d.id IS NOT NULL THEN 'parked' ELSE 'accepted' END AS state,
    greatest(made.attempts, p.attempts_made, d.attempts_made) AS attempts_made,
    CASE WHEN p.id IS NOT NULL THEN last.reason WHEN d.id IS NOT NULL THEN d.reason END AS last_reason,
    CASE WHEN p.id IS NULL THEN coalesce(d.parked_at, taken.ended_at) END AS outcome_at,
    p.due_at, p.schedule_start, p.attempts_made + 1 - p.asked - p.is_asked::integer AS steps_made,
    a.state AS partner_state, coalesce(a.stopped_at, a.updated_at) AS partner_since,
    a.settings ->> 'name' AS partner_name,
    e.id AS endpoint_id, e.state AS endpoint_state, e.target, e.last_reason AS endpoint_reason, e.probe_at,
    ${earlierThan("p")} AS after_id
  FROM unnest($1::uuid[], $2::uuid[]) WITH ORDINALITY AS k (partner_id, id, place)
  LEFT JOIN LATERAL (SELECT a.* FROM partners a WHERE a.id = k.partner_id LIMIT 1) AS a ON true
  LEFT JOIN LATERAL (
    SELECT n.id, n.transaction_id, n.command, n.callback_url, n.created_at FROM notifications n
    WHERE n.partner_id = k.partner_id AND n.id = k.id AND n.id BETWEEN $3 AND $4 LIMIT 1) AS n ON true
  LEFT JOIN LATERAL (
    SELECT p.* FROM pending p WHERE p.partner_id = k.partner_id AND p.id = k.id LIMIT 1) AS p ON true
  CROSS JOIN LATERAL (
    SELECT coalesce(a.registered_routes -> p.queue ->> 'origin', a.registered_origin) AS origin,
      coalesce(a.settings -> 'callBackUrlByCommand' ->> p.queue, a.settings ->> 'callBackUrl') AS url) AS r
  LEFT JOIN LATERAL (
    SELECT e.* FROM endpoints e
    WHERE e.partner_id = p.partner_id AND e.state <> 'closed' AND e.queue = ANY (CASE
      WHEN p.queue LIKE '%://%' THEN ARRAY[split_part(p.queue, ' ', 1)]
      ELSE ARRAY[r.origin, r.origin || ' ' || encode(sha256(convert_to(r.url, 'UTF8')), 'hex')] END)
    ORDER BY e.state DESC LIMIT 1) AS e ON true
  LEFT JOIN LATERAL (
    SELECT d.id, d.attempts_made, d.reason, d.parked_at, d.notification FROM parked d
    WHERE d.partner_id = k.partner_id AND d.id = k.id LIMIT 1) AS d ON true
  LEFT JOIN LATERAL (
    SELECT a.reason FROM attempts a
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
  SELECT * FROM (
    SELECT row_number() OVER (ORDER BY a.round, a.attempt_no, a.lease_id) AS attempt_no, count(*) OVER () AS attempts,
      a.started_at, a.duration_ms, a.url, a.address, a.http_status, a.reason, a.detail, a.answer, a.key_id, a.lease_id
    FROM attempts a WHERE a.partner_id = $1 AND a.id = $2) AS numbered
  WHERE attempt_no > attempts - $3 ORDER BY attempt_no`;

const keyUse = `
  SELECT a.key_id AS "keyId", count(*) FILTER (WHERE a.reason IS NULL)::integer AS accepted,
    count(*) FILTER (WHERE a.reason IS NOT NULL)::integer AS failed,
    extract(epoch FROM max(a.started_at) FILTER (WHERE a.reason IS NULL))::float8 * 1000 AS "lastAcceptedAtMs"
  FROM (
    SELECT a.key_id, a.reason, a.started_at FROM attempts a
    WHERE a.partner_id = $1 AND a.id >= $2::uuid ORDER BY a.id DESC LIMIT $3) AS a
  WHERE a.key_id IS NOT NULL GROUP BY a.key_id`;

interface StatusRow {
  readonly partner_id: PartnerId;
  readonly id: NotificationId;
  readonly transaction_id: TransactionId | null;
  readonly command: NotifiedCommand;
  readonly callback_url: string | null;
  readonly created_at: Date;
  readonly state: NotificationState;
  readonly attempts_made: number;
  readonly last_reason: ParkedReason | null;
  readonly outcome_at: Date | null;
  /** Null unless it is pending. */
  readonly due_at: Date | null;
  readonly schedule_start: Date | null;
  readonly steps_made: number | null;
  readonly partner_state: "active" | "paused" | "disabled" | null;
  readonly partner_since: Date | null;
  readonly partner_name: string | null;
  readonly endpoint_id: string | null;
  readonly endpoint_state: "open" | "gone" | null;
  readonly target: string | null;
  readonly endpoint_reason: string | null;
  readonly probe_at: Date | null;
  readonly after_id: NotificationId | null;
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
    lastReason: row.last_reason,
    outcomeAtMs: row.outcome_at?.getTime() ?? null,
    waiting: waitingFor(row),
    schedule: scheduleOf(row),
    partnerName: row.partner_name ?? "",
  }));
}

function scheduleOf({ schedule_start: start, steps_made: stepsMade }: StatusRow): RunningSchedule | null {
  return start === null || stepsMade === null ? null : { startMs: start.getTime(), stepsMade };
}

/** Null unless it is pending. */
function waitingFor(row: StatusRow): WaitingFor | null {
  if (row.due_at === null) return null;
  const untilMs = row.due_at.getTime();
  if (row.partner_state !== null && row.partner_state !== "active") {
    return { because: row.partner_state, sinceMs: row.partner_since?.getTime() ?? untilMs, untilMs: null };
  }
  // Before its endpoint: no probe sends it, and neither does a closed circuit.
  if (row.after_id !== null) return { because: "order", after: row.after_id, untilMs };
  if (row.endpoint_state !== null && row.endpoint_id !== null && row.target !== null) {
    const { endpoint_id: endpointId, target, endpoint_reason: reason, probe_at: probeAt } = row;
    const endpoint = { endpointId, target, reason };
    if (row.endpoint_state === "gone") return { because: "gone", ...endpoint, untilMs: null };
    return { because: "circuit", ...endpoint, untilMs: Math.max(probeAt?.getTime() ?? 0, untilMs) };
  }
  return { because: row.attempts_made > 0 && untilMs > Date.now() ? "retry" : "turn", untilMs };
}

export async function readKeyUse(
  pool: Pool,
  partnerId: PartnerId,
  sinceMs: number,
  rowsMax: number,
): Promise<readonly KeyUse[]> {
  return (await queryAlongIndexes<KeyUse>(pool, keyUse, [partnerId, lowestId(sinceMs), rowsMax])).rows;
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
  const { rows } = await queryAlongIndexes<Row>(pool, subjects, [...boundsOf(keys), bytesMax]);
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
  const wanted = texts.map((value) => value ?? null);
  return (await queryAlongIndexes<NotificationKey>(pool, matching, [...boundsOf(keys), ...wanted])).rows;
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

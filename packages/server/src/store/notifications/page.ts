import type { Pool } from "pg";
import { idTimeMs, lowestId, type NotificationId, type PartnerId } from "../../ids.ts";
import type {
  Following,
  HistoryPoint,
  HistoryPosition,
  NotificationContent,
  NotificationStore,
  PageRow,
  StoredBacklog,
} from "../../notifications/store.ts";
import { countUpTo, epochMs, queryAlongIndexes } from "../database/along-indexes.ts";
import { planned, prepared } from "../database/statement.ts";

// Statements for people are planned with their values, so that they read only the days they need.

// The control file's timeline lags behind a promotion until the next checkpoint; that of the WAL position does not.
const history = planned<HistoryRow>(`
  SELECT (SELECT system_identifier FROM pg_control_system())::text AS system_identifier,
    left(pg_walfile_name(pg_current_wal_lsn()), 8) AS timeline,
    pg_snapshot_xmin(pg_current_snapshot())::text AS horizon,
    (SELECT kept_from FROM history) AS kept_from,
    now() AS now`);

const page = `
  SELECT n.id, n.xid::text AS xid, pg_column_size(n.content) AS stored_bytes
  FROM notifications n
  WHERE n.partner_id = $1 AND (n.xid, n.id) > ($2::xid8, $3::uuid) AND n.xid < $4::xid8
    AND n.xid > '0'
  ORDER BY n.xid, n.id LIMIT $5`;

// The first notification after each position decides: if it is not visible, nothing after it is shown either.
const following = `
  SELECT w.place::integer AS place, n.xid < pg_snapshot_xmin(pg_current_snapshot()) AS visible
  FROM unnest($1::uuid[], $2::xid8[], $3::uuid[]) WITH ORDINALITY AS w (partner_id, xid, id, place)
  CROSS JOIN LATERAL (
    SELECT n.xid FROM notifications n
    WHERE n.partner_id = w.partner_id AND (n.xid, n.id) > (w.xid, w.id) AND n.xid > '0' AND n.id >= $4::uuid
    ORDER BY n.xid, n.id LIMIT 1) AS n`;

/** An id is created just before its notification is written; only an outage delays the write longer. */
const writtenWithinMs = 86_400_000;

const contents = `
  SELECT n.id, n.transaction_id AS "transactionId", n.command, n.callback_url AS "callBackUrl",
    ${epochMs("n.created_at")} AS "createdAtMs", n.content::text AS content, n.content_mac AS mac,
    CASE WHEN n.original_id IS NULL THEN n.original_external_id END AS "originalExternalId",
    coalesce(n.original_id, (
      SELECT o.id FROM transactions o
      WHERE (o.partner_id = n.partner_id) IS TRUE AND o.external_id = n.original_external_id
        AND o.origin = 'switch')) AS "originalId",
    CASE WHEN p.id IS NOT NULL THEN 'pending' WHEN d.id IS NOT NULL THEN 'parked' ELSE 'accepted' END AS state,
    greatest(made.attempts, p.attempts_made, d.attempts_made) AS "attemptsMade",
    coalesce(p.to_registered, false) AS "toRegistered"
  FROM notifications n
  LEFT JOIN LATERAL (
    SELECT p.id, p.attempts_made, p.to_registered FROM pending p
    WHERE p.partner_id = $1 AND p.id = n.id LIMIT 1) AS p ON true
  LEFT JOIN LATERAL (
    SELECT d.id, d.attempts_made FROM parked d WHERE d.partner_id = $1 AND d.id = n.id LIMIT 1) AS d ON true
  CROSS JOIN LATERAL (
    SELECT count(*)::integer AS attempts FROM attempts a
    WHERE a.partner_id = $1 AND a.id = n.id AND a.id BETWEEN $3 AND $4) AS made
  WHERE n.partner_id = $1 AND n.id = ANY ($2::uuid[]) AND n.id BETWEEN $3 AND $4`;

interface HistoryRow {
  readonly system_identifier: string;
  readonly timeline: string;
  readonly horizon: string;
  readonly kept_from: Date;
  readonly now: Date;
}

export async function readHistory(pool: Pool): ReturnType<NotificationStore["history"]> {
  const row = await history.first(pool);
  if (row === undefined) throw new Error("The database did not tell its identity.");
  return {
    // The server returns the identifier as a signed number.
    cluster: {
      systemIdentifier: BigInt.asUintN(64, BigInt(row.system_identifier)),
      timeline: Number.parseInt(row.timeline, 16),
    },
    keptFromMs: row.kept_from.getTime(),
    horizon: BigInt(row.horizon),
    nowMs: row.now.getTime(),
  };
}

export async function readPage(
  pool: Pool,
  partnerId: PartnerId,
  after: HistoryPoint,
  horizon: bigint,
  rowsMax: number,
): Promise<readonly PageRow[]> {
  const rows = await queryAlongIndexes<{ id: NotificationId; xid: string; stored_bytes: number }>(pool, page, [
    partnerId,
    String(after.xid),
    after.id,
    String(horizon),
    rowsMax,
  ]);
  return rows.map((row) => ({ id: row.id, xid: BigInt(row.xid), storedBytes: row.stored_bytes }));
}

/** Reads only the days of history that contain ids of current notifications: two of them, not a hundred. */
export async function readFollowing(pool: Pool, places: readonly HistoryPosition[]): Promise<readonly Following[]> {
  const rows = await queryAlongIndexes<{ place: number; visible: boolean }>(pool, following, [
    places.map(({ partnerId }) => partnerId),
    places.map(({ after }) => String(after.xid)),
    places.map(({ after }) => after.id),
    lowestId(Date.now() - writtenWithinMs),
  ]);
  const visible = new Map(rows.map((row) => [row.place, row.visible]));
  return places.map((_, index) => {
    const isVisible = visible.get(index + 1);
    return isVisible === undefined ? "nothing" : isVisible ? "visible" : "not_visible";
  });
}

export async function readContents(
  pool: Pool,
  partnerId: PartnerId,
  ids: readonly NotificationId[],
): Promise<ReadonlyMap<NotificationId, NotificationContent>> {
  const sorted = [...ids].sort();
  const values = [partnerId, sorted, sorted[0], sorted.at(-1)];
  const rows = await queryAlongIndexes<NotificationContent>(pool, contents, values);
  return new Map(rows.map((row) => [row.id, row]));
}

const countedMax = 10_000;

const backlog = prepared<{ pending: number; oldest_id: string | null; parked: number }>(`
    SELECT ${countUpTo(countedMax, "pending p WHERE p.partner_id = $1")} AS pending,
      (SELECT p.id FROM pending p WHERE p.partner_id = $1 ORDER BY p.id LIMIT 1) AS oldest_id,
      ${countUpTo(countedMax, "parked d WHERE d.partner_id = $1")} AS parked`);

const lastPull = prepared<{ cursor: string; at: Date }>("SELECT u.cursor, u.at FROM pulls u WHERE u.partner_id = $1");

const notePull = prepared(`
  INSERT INTO pulls (partner_id, cursor) VALUES ($1, $2)
  ON CONFLICT (partner_id) DO UPDATE SET cursor = excluded.cursor, at = excluded.at`);

export async function readBacklog(pool: Pool, partnerId: PartnerId): Promise<StoredBacklog> {
  const [counts, pull] = await Promise.all([backlog.first(pool, [partnerId]), lastPull.first(pool, [partnerId])]);
  const { pending = 0, oldest_id = null, parked = 0 } = counts ?? {};
  return {
    pending,
    oldestPendingMs: oldest_id === null ? null : idTimeMs(oldest_id),
    parked,
    pull: pull === undefined ? null : { cursor: pull.cursor, atMs: pull.at.getTime() },
  };
}

export async function writePull(pool: Pool, partnerId: PartnerId, cursor: string): Promise<void> {
  await notePull.run(pool, [partnerId, cursor]);
}

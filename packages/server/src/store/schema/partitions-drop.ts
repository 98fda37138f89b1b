import { setTimeout as pause } from "node:timers/promises";
import type { Pool, PoolClient } from "pg";
import type { ContentMac } from "../../delivery/content-mac.ts";
import { lowestId } from "../../ids.ts";
import { failureKindOf } from "../database/retryable.ts";
import { type Parking, parkWithoutAttempt } from "../deliveries/deliveries.ts";
import { keepProofs } from "../notifications/proofs.ts";
import { dayMs, historyTables, idsOfDay, partitionName } from "./partition-days.ts";

export type DropResult = "dropped" | "a delivery is under way" | "history was busy";

export interface DayToDrop {
  readonly pool: Pool;
  readonly day: number;
  /** The longest schedule: a requested redelivery first runs to its end. */
  readonly scheduleS: number;
  readonly contents: Pick<ContentMac, "isAsCommitted">;
  /** Runs the last step in one short transaction, under a lock timeout and on one instance at a time. */
  finally<Result>(work: (client: PoolClient) => Promise<Result>): Promise<Result>;
}

const batchRows = 500;
const lockTries = 5;

const underWay = `
  SELECT FROM pending
  WHERE id >= $1 AND id < $2 AND schedule_start > now() - $3 * interval '1 second' LIMIT 1`;

// The content as text, because jsonb would sort its keys.
const content = `
  (SELECT to_jsonb(n) || jsonb_build_object('content', n.content::text) FROM notifications n
   WHERE n.partner_id = m.partner_id AND n.id = m.id)`;

const pendingOfDay = `
  SELECT p.partner_id AS "partnerId", p.id, p.round, p.attempts_made AS "attemptsMade",
    coalesce((SELECT a.reason FROM attempts a WHERE a.partner_id = p.partner_id AND a.id = p.id
              ORDER BY a.round DESC, a.attempt_no DESC, a.lease_id DESC LIMIT 1), 'retention') AS reason
  FROM pending p WHERE p.id >= $1 AND p.id < $2
  ORDER BY p.partner_id, p.id LIMIT $3`;

const takeContent = `
  UPDATE parked m SET notification = ${content}
  WHERE (m.partner_id, m.id) IN (
    SELECT d.partner_id, d.id FROM parked d WHERE d.id >= $1 AND d.id < $2 AND d.notification IS NULL
    ORDER BY d.partner_id, d.id LIMIT $3)
    AND EXISTS (SELECT FROM notifications n WHERE n.partner_id = m.partner_id AND n.id = m.id)`;

const stillNeeded = `
  SELECT 1 FROM pending WHERE id >= $1 AND id < $2
  UNION ALL
  SELECT 1 FROM parked m WHERE m.id >= $1 AND m.id < $2 AND m.notification IS NULL
  LIMIT 1`;

/**
 * Drops one day of history. Pending and parked notifications are first moved to `parked` with their content, and what
 * proves the delivery of the others to `proofs`, in small transactions. The last transaction only checks whether
 * something was added since, because everything that touches history waits for it.
 */
export async function dropDay(drop: DayToDrop): Promise<DropResult> {
  const ids = idsOfDay(drop.day);
  const busy = await drop.pool.query(underWay, [...ids, drop.scheduleS]);
  if (busy.rowCount !== 0) return "a delivery is under way";
  while ((await parkSome(drop.pool, ids)) === batchRows);
  let moved: number | null = batchRows;
  while (moved === batchRows) moved = (await drop.pool.query(takeContent, [...ids, batchRows])).rowCount;
  await keepProofs(drop.pool, ids, drop.contents);
  for (let tries = 1; ; tries += 1) {
    try {
      return await drop.finally((client) => detachAndDrop(client, drop.day));
    } catch (error) {
      if (error instanceof StillNeeded) return "a delivery is under way";
      if (failureKindOf(error) !== "conflict") throw error;
      if (tries === lockTries) return "history was busy";
      await pause(tries * 50);
    }
  }
}

/** Parks the rows that do not change meanwhile; their content follows. @returns the number of these */
async function parkSome(pool: Pool, ids: readonly [string, string]): Promise<number> {
  const { rows } = await pool.query<Parking>(pendingOfDay, [...ids, batchRows]);
  const parked = await parkWithoutAttempt(pool, rows);
  return parked.length;
}

async function detachAndDrop(client: PoolClient, day: number): Promise<DropResult> {
  const [from, to] = idsOfDay(day);
  for (const table of historyTables) {
    const name = partitionName(table, day);
    // Already dropped, by an instance that was faster.
    const { rowCount } = await client.query("SELECT FROM pg_inherits WHERE inhrelid = to_regclass($1)", [name]);
    if (rowCount === 0) continue;
    await client.query("SELECT drop_history_partition($1, $2)", [table, name]);
  }
  // With the locks held nothing can be added. A row added just before is seen here, and rolls everything back.
  const { rowCount } = await client.query(stillNeeded, [from, to]);
  if (rowCount !== 0) throw new StillNeeded();
  await client.query("UPDATE history SET kept_from = greatest(kept_from, $1)", [new Date(day + dayMs)]);
  return "dropped";
}

class StillNeeded extends Error {}

/** The length of the longest retry schedule of all partners. */
export async function longestScheduleS(pool: Pool): Promise<number> {
  const { rows } = await pool.query<{ seconds: number | null }>(
    `SELECT max(sums.s)::float8 AS seconds FROM partners p CROSS JOIN LATERAL (
       SELECT sum(step::numeric) AS s FROM jsonb_array_elements_text(p.settings -> 'retry') AS step) AS sums`,
  );
  return rows[0]?.seconds ?? 0;
}

/**
 * Deletes the row of an endpoint without changes for this long: it then counts as one that never failed. A tripped one
 * is probed while anything is pending for it. One that is gone stays until a person closes it.
 */
export async function pruneEndpoints(pool: Pool, before: Date): Promise<void> {
  const rowsMax = 5_000;
  let deleted: number | null = rowsMax;
  while (deleted === rowsMax) {
    const { rowCount }: { rowCount: number | null } = await pool.query(
      `DELETE FROM endpoints WHERE (partner_id, id) IN (
         SELECT partner_id, id FROM endpoints WHERE state <> 'gone' AND updated_at < $1
         LIMIT $2 FOR UPDATE SKIP LOCKED)`,
      [before, rowsMax],
    );
    deleted = rowCount;
  }
}

/** Events are kept as long as history; an alert that is still to be sent stays. */
export async function pruneEvents(pool: Pool, beforeMs: number): Promise<void> {
  const rowsMax = 5_000;
  let deleted: number | null = rowsMax;
  while (deleted === rowsMax) {
    const { rowCount }: { rowCount: number | null } = await pool.query(
      `DELETE FROM events WHERE (partner_id, id) IN (
         SELECT partner_id, id FROM events WHERE id < $1 AND alert_due_at IS NULL LIMIT $2)`,
      [lowestId(beforeMs), rowsMax],
    );
    deleted = rowCount;
  }
}

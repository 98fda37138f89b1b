import { setTimeout as pause } from "node:timers/promises";
import type { Pool, PoolClient } from "pg";
import type { Clock } from "../../clock.ts";
import { historyMarginDays } from "../../config/retry-schedule.ts";
import type { ContentMac } from "../../delivery/attempt/content-mac.ts";
import { lowestId } from "../../ids.ts";
import type { Home, Homes } from "../database/homes.ts";
import { planned, runInBatches } from "../database/statement.ts";
import { failureKindOf, inTransaction } from "../database/transaction.ts";
import { type Parking, parkWithoutAttempt } from "../deliveries/deliveries.ts";
import { keepProofs, pruneProofs } from "../notifications/proofs.ts";

export interface PartitionsOptions {
  readonly homes: Homes;
  readonly clock: Pick<Clock, "nowMs">;
  /** The retention of history in whole days. */
  readonly historyDays: number;
  /** The retention of what proves a delivery once its day was dropped. */
  readonly proofDays: number;
  /** Nothing proves the delivery of a notification that somebody changed. */
  readonly contents: Pick<ContentMac, "isAsCommitted">;
  /** The timeout of dropping a day while another statement holds the lock. */
  readonly dropLockTimeoutMs?: number;
}

/** The result of a maintenance run, and the work left for the next call. */
export interface Maintained {
  readonly created: number;
  readonly dropped: number;
  /** Days past retention that could not be dropped yet, with the reason. */
  readonly waiting: readonly { readonly day: string; readonly why: string }[];
  /** Errors of days that could not be created: retried at the next call. */
  readonly troubles: readonly unknown[];
  readonly daysAhead: number;
  /** History is kept longer than its retention, because a partner's retry schedule needs it. */
  readonly prolonged?: { readonly days: number; readonly scheduleDays: number } | undefined;
}

const daysAheadWanted = 14;
/** The timeout of creating a day while another statement holds the lock. */
const createLockTimeoutMs = 5_000;
// An arbitrary number, the same in every version of the service.
const partitionLock = 7_420_002;

/** Creates the days of history ahead of time, and drops them after their retention. */
export class Partitions {
  readonly #options: Required<PartitionsOptions>;

  constructor(options: PartitionsOptions) {
    // Short, because every statement on history queues behind it.
    this.#options = { dropLockTimeoutMs: 500, ...options };
  }

  /**
   * Called at startup and every hour; several instances may call it concurrently.
   *
   * @throws the database's error if there is no partition for today
   */
  async maintain(): Promise<Maintained> {
    const todayMs = dayOf(this.#options.clock.nowMs());
    const wanted = Array.from({ length: daysAheadWanted + 2 }, (_, index) => todayMs + (index - 1) * dayMs);
    const { created, troubles } = await this.#create(wanted);
    const daysAhead = await this.partitionsAhead();
    if (daysAhead < 0) throw troubles[0] ?? new Error("There is no partition for today.");
    return { created, troubles, daysAhead, ...(await this.#dropExpired(todayMs)) };
  }

  /** The number of days after today with partitions; -1 if today has none. Below 3 is a warning. */
  async partitionsAhead(): Promise<number> {
    const todayMs = dayOf(this.#options.clock.nowMs());
    const ahead = this.#options.homes.all.map(async (home) => {
      const standing = await daysOfAll(home);
      let days = 0;
      while (standing.has(todayMs + days * dayMs)) days += 1;
      return days - 1;
    });
    return Math.min(...(await Promise.all(ahead)));
  }

  /** Creates the days of these times if they are missing: for notifications that outlived their day. */
  async ensureDays(momentsMs: readonly number[]): Promise<void> {
    const { troubles } = await this.#create(momentsMs.map(dayOf));
    if (troubles.length > 0) throw troubles[0];
  }

  async #create(daysMs: readonly number[]): Promise<{ created: number; troubles: unknown[] }> {
    const troubles: unknown[] = [];
    let created = 0;
    for (const home of this.#options.homes.all) {
      const standing = await daysOfAll(home);
      for (const day of new Set(daysMs)) {
        if (standing.has(day)) continue;
        try {
          const create = (client: PoolClient) => createDay(client, day);
          if (await alone(home, createLockTimeoutMs, create)) created += 1;
        } catch (error) {
          troubles.push(error);
        }
      }
    }
    return { created, troubles };
  }

  async #dropExpired(todayMs: number): Promise<Pick<Maintained, "dropped" | "waiting" | "prolonged">> {
    const { homes, historyDays, proofDays, contents, dropLockTimeoutMs } = this.#options;
    const [first] = homes.all;
    // Every home has all partners.
    const scheduleS = first === undefined ? 0 : await longestScheduleS(first.pool);
    const scheduleDays = Math.ceil(scheduleS / 86_400);
    const days = Math.max(historyDays, scheduleDays + historyMarginDays);
    const keptFromMs = todayMs - days * dayMs;
    const waiting: { day: string; why: string }[] = [];
    let dropped = 0;
    for (const home of homes.all) {
      const { pool } = home;
      const expired = [...(await daysOfAny(home))].filter((day) => day < keptFromMs).sort((a, b) => a - b);
      for (const day of expired) {
        const result = await dropDay({
          pool,
          day,
          scheduleS,
          contents,
          finally: (work) => alone(home, dropLockTimeoutMs, work),
        });
        if (result === "dropped") dropped += 1;
        else waiting.push({ day: new Date(day).toISOString().slice(0, 10), why: result });
      }
      await runInBatches(pool, dropEvents, [lowestId(keptFromMs)]);
      await pruneProofs(pool, todayMs - proofDays * dayMs);
      await runInBatches(pool, dropEndpoints, [new Date(keptFromMs)]);
    }
    return { dropped, waiting, prolonged: days > historyDays ? { days, scheduleDays } : undefined };
  }
}

/** One instance at a time: PostgreSQL would refuse the second of two that create or drop the same day. */
function alone<Result>(
  { ddl }: Home,
  lockTimeoutMs: number,
  work: (client: PoolClient) => Promise<Result>,
): Promise<Result> {
  return inTransaction(ddl, async (client) => {
    await client.query("SELECT pg_advisory_xact_lock($1)", [partitionLock]);
    await client.query("SELECT set_config('lock_timeout', $1, true)", [String(lockTimeoutMs)]);
    return work(client);
  });
}

/** Days that every table of history has. */
async function daysOfAll({ ddl }: Home): Promise<Set<number>> {
  const [first, ...others] = await Promise.all(historyTables.map((table) => daysOfTable(ddl, table)));
  return new Set([...(first ?? [])].filter((day) => others.every((days) => days.has(day))));
}

/** Days that any table of history has. */
export async function daysOfAny({ ddl }: Home): Promise<Set<number>> {
  const days = await Promise.all(historyTables.map((table) => daysOfTable(ddl, table)));
  return new Set(days.flatMap((some) => [...some]));
}

async function daysOfTable(database: Pool | PoolClient, table: string): Promise<Set<number>> {
  const { rows } = await database.query<{ name: string }>(
    `SELECT c.relname AS name FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
     WHERE i.inhparent = $1::regclass AND NOT i.inhdetachpending`,
    [table],
  );
  return new Set(rows.flatMap(({ name }) => dayOfPartition(name) ?? []));
}

async function createDay(client: PoolClient, day: number): Promise<boolean> {
  const [from, to] = idsOfDay(day);
  let created = false;
  for (const table of historyTables) {
    // Another instance may have created it while this one waited for the lock.
    if ((await daysOfTable(client, table)).has(day)) continue;
    const name = partitionName(table, day);
    await client.query("SELECT create_history_partition($1, $2, $3, $4)", [table, name, from, to]);
    created = true;
  }
  return created;
}

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

const underWay = planned(`
  SELECT FROM pending
  WHERE id >= $1 AND id < $2 AND schedule_start > now() - $3 * interval '1 second' LIMIT 1`);

// The content as text, because jsonb would sort its keys.
const content = `
  (SELECT to_jsonb(n) || jsonb_build_object('content', n.content::text) FROM notifications n
   WHERE n.partner_id = m.partner_id AND n.id = m.id)`;

const pendingOfDay = planned<Parking>(`
  SELECT p.partner_id AS "partnerId", p.id, p.round, p.attempts_made AS "attemptsMade",
    coalesce((SELECT a.reason FROM attempts a WHERE a.partner_id = p.partner_id AND a.id = p.id
              ORDER BY a.round DESC, a.attempt_no DESC, a.lease_id DESC LIMIT 1), 'retention') AS reason
  FROM pending p WHERE p.id >= $1 AND p.id < $2
  ORDER BY p.partner_id, p.id LIMIT $3`);

const takeContent = planned(`
  UPDATE parked m SET notification = ${content}
  WHERE (m.partner_id, m.id) IN (
    SELECT d.partner_id, d.id FROM parked d WHERE d.id >= $1 AND d.id < $2 AND d.notification IS NULL
    ORDER BY d.partner_id, d.id LIMIT $3)
    AND EXISTS (SELECT FROM notifications n WHERE n.partner_id = m.partner_id AND n.id = m.id)`);

const stillNeeded = planned(`
  SELECT 1 FROM pending WHERE id >= $1 AND id < $2
  UNION ALL
  SELECT 1 FROM parked m WHERE m.id >= $1 AND m.id < $2 AND m.notification IS NULL
  LIMIT 1`);

/**
 * Drops one day of history. Pending and parked notifications are first moved to `parked` with their content, and what
 * proves the delivery of the others to `proofs`, in small transactions. The last transaction only checks whether
 * something was added since, because everything that touches history waits for it.
 */
async function dropDay(drop: DayToDrop): Promise<DropResult> {
  const ids = idsOfDay(drop.day);
  if ((await underWay.run(drop.pool, [...ids, drop.scheduleS])) > 0) return "a delivery is under way";
  while ((await parkSome(drop.pool, ids)) === batchRows);
  await runInBatches(drop.pool, takeContent, ids, batchRows);
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
  const rows = await pendingOfDay.rows(pool, [...ids, batchRows]);
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
  const rowCount = await stillNeeded.run(client, [from, to]);
  if (rowCount !== 0) throw new StillNeeded();
  await client.query("UPDATE history SET kept_from = greatest(kept_from, $1)", [new Date(day + dayMs)]);
  return "dropped";
}

class StillNeeded extends Error {}

/** The length of the longest retry schedule of all partners. */
async function longestScheduleS(pool: Pool): Promise<number> {
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
const dropEndpoints = planned(`
  DELETE FROM endpoints WHERE (partner_id, id) IN (
    SELECT partner_id, id FROM endpoints WHERE state <> 'gone' AND updated_at < $1
    LIMIT $2 FOR UPDATE SKIP LOCKED)`);

/** Events are kept as long as history; an alert that is still to be sent stays. */
const dropEvents = planned(`
  DELETE FROM events WHERE (partner_id, id) IN (
    SELECT partner_id, id FROM events WHERE id < $1 AND alert_due_at IS NULL LIMIT $2)`);

export const dayMs = 86_400_000;

/** The tables whose rows are assigned to a day by their id. */
const historyTables = ["notifications", "attempts"] as const;

/** The start of the UTC day of a time, in milliseconds since 1970. */
export function dayOf(atMs: number): number {
  return Math.floor(atMs / dayMs) * dayMs;
}

export function partitionName(table: string, startMs: number): string {
  return `${table}_${new Date(startMs).toISOString().slice(0, 10).replaceAll("-", "")}`;
}

/** The day in a partition's name; undefined for a foreign name. */
function dayOfPartition(name: string): number | undefined {
  const [, year, month, day] = /_(\d{4})(\d\d)(\d\d)$/.exec(name) ?? [];
  if (year === undefined || month === undefined || day === undefined) return undefined;
  return Date.UTC(Number(year), Number(month) - 1, Number(day));
}

/** The ids of a day: from the first, inclusive, to the second, exclusive. */
export function idsOfDay(startMs: number): readonly [string, string] {
  return [lowestId(startMs), lowestId(startMs + dayMs)];
}

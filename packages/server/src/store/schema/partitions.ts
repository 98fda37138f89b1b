import type { Pool, PoolClient } from "pg";
import type { Clock } from "../../clock.ts";
import type { ContentMac } from "../../delivery/content-mac.ts";
import { historyMarginDays } from "../../retry-schedule.ts";
import type { Home, Homes } from "../database/homes.ts";
import { inTransaction } from "../database/transaction.ts";
import { pruneProofs } from "../notifications/proofs.ts";
import { dayMs, dayOf, dayOfPartition, historyTables, idsOfDay, partitionName } from "./partition-days.ts";
import { dropDay, longestScheduleS, pruneEndpoints, pruneEvents } from "./partitions-drop.ts";

export interface PartitionsOptions {
  readonly homes: Homes;
  readonly clock: Pick<Clock, "nowMs">;
  /** The retention of history in whole days. */
  readonly historyDays: number;
  /** The retention of what proves a delivery once its day was dropped. */
  readonly proofDays: number;
  /** Nothing proves the delivery of a notification that somebody changed. */
  readonly contents: Pick<ContentMac, "isAsCommitted">;
  /** The timeout of creating a day while another statement holds the lock. */
  readonly createLockTimeoutMs?: number;
  /** The same for dropping one. Short, because every statement on history queues behind it. */
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
// An arbitrary number, the same in every version of the service.
const partitionLock = 7_420_002;

/** Creates the days of history ahead of time, and drops them after their retention. */
export class Partitions {
  readonly #options: Required<PartitionsOptions>;

  constructor(options: PartitionsOptions) {
    this.#options = { createLockTimeoutMs: 5_000, dropLockTimeoutMs: 500, ...options };
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
          if (await alone(home, this.#options.createLockTimeoutMs, create)) created += 1;
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
      await pruneEvents(pool, keptFromMs);
      await pruneProofs(pool, todayMs - proofDays * dayMs);
      await pruneEndpoints(pool, new Date(keptFromMs));
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

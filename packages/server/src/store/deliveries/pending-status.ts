import type { Pool } from "pg";
import { idTimeMs, type PartnerId } from "../../ids.ts";
import type { CurrentCounts, CurrentCountsStore } from "../../notifications/overview.ts";
import { countUpTo } from "../database/along-indexes.ts";
import type { Database } from "../database/database.ts";
import type { Homes } from "../database/homes.ts";
import { planned, prepared } from "../database/statement.ts";

// On Citus the name of a home's table includes the number of its shard.
const estimateOf = (table: "pending" | "parked") => `(
        SELECT sum(n_live_tup)::bigint FROM pg_stat_user_tables
        WHERE schemaname = current_schema() AND relname ~ '^${table}(_[0-9]+)?$')`;

/** One index step for each partner with rows in the table: its oldest, whose id contains its time. */
export const oldestOfEach = (table: "pending" | "parked", name: string) => `${name} AS (
      (SELECT p.partner_id, p.id FROM ${table} p ORDER BY p.partner_id, p.id LIMIT 1)
      UNION ALL
      SELECT next.partner_id, next.id FROM ${name} o CROSS JOIN LATERAL (
        SELECT p.partner_id, p.id FROM ${table} p WHERE p.partner_id > o.partner_id
        ORDER BY p.partner_id, p.id LIMIT 1) AS next)`;

type StatusRow = {
  oldest_id: string | null;
  few: number;
  estimate: number;
  parked_few: number;
  parked_estimate: number;
};
type BacklogRow = { partner_id: PartnerId; oldest_id: string | null; pending: number; parked: number };

// The counts are exact while they are small and estimates beyond, so that no statement grows with the backlog.
const pendingStatus = prepared<StatusRow>(`
  WITH RECURSIVE ${oldestOfEach("pending", "oldest")}
  SELECT (SELECT min(id::text) FROM oldest) AS oldest_id,
    ${countUpTo(10_001, "pending")} AS few,
    ${estimateOf("pending")} AS estimate,
    ${countUpTo(10_001, "parked")} AS parked_few,
    ${estimateOf("parked")} AS parked_estimate`);

/** Pending notifications of all instances. */
export interface PendingCount {
  /** Exact up to 10,000, an estimate beyond. */
  readonly count: number;
  /** When the oldest was created; undefined if nothing is pending. */
  readonly oldestMs: number | undefined;
  /** Parked notifications; exact up to 10,000, an estimate beyond. */
  readonly parked: number;
}

// The partner whose oldest has waited longest comes first. Each count is bounded, because nobody needs the exact number
// beyond.
const backlogByPartner = prepared<BacklogRow>(`
  WITH RECURSIVE ${oldestOfEach("pending", "waiting")}, ${oldestOfEach("parked", "given_up")},
  chosen AS (
    SELECT coalesce(w.partner_id, g.partner_id) AS partner_id, w.id AS oldest_id
    FROM waiting w FULL JOIN given_up g ON g.partner_id = w.partner_id
    ORDER BY w.id NULLS LAST, g.id LIMIT $1)
  SELECT c.partner_id, c.oldest_id,
    ${countUpTo(1_000, "pending p WHERE p.partner_id = c.partner_id")} AS pending,
    ${countUpTo(1_000, "parked d WHERE d.partner_id = c.partner_id")} AS parked
  FROM chosen c`);

const unownedShards = prepared<{ shard: number }>("SELECT shard FROM shards WHERE lease_id IS NULL");
const announceDue = prepared("SELECT pg_notify('paybell_due', $1)");

/** Pending and parked notifications of one partner, of all instances. */
export interface PartnerBacklog {
  readonly partnerId: PartnerId;
  /** Up to 1,000. */
  readonly pending: number;
  /** Up to 1,000. */
  readonly parked: number;
  /** When its oldest pending one was created. */
  readonly oldestMs: number | undefined;
}

/** Pending deliveries as a whole: counts them, and notifies other processes. */
export class PendingStatus {
  readonly #engine: Pool;
  readonly #homes: Homes;

  /** @param engine the database that every instance listens to, with the shards */
  constructor({ engine, homes }: Pick<Database, "engine" | "homes">) {
    this.#engine = engine;
    this.#homes = homes;
  }

  /** Resolves when the database answers the engine's connections, at every home. */
  async ping(): Promise<void> {
    await Promise.all([this.#engine.query("SELECT"), ...this.#homes.all.map(({ engine }) => engine.query("SELECT"))]);
  }

  async count(): Promise<PendingCount> {
    const rows = await this.#homes.gather(({ engine }) => pendingStatus.rows(engine));
    const [oldest] = rows.flatMap(({ oldest_id }) => (oldest_id === null ? [] : [oldest_id])).sort();
    return {
      count: sum(rows.map((row) => counted(row.few, row.estimate))),
      oldestMs: oldest === undefined ? undefined : idTimeMs(oldest),
      parked: sum(rows.map((row) => counted(row.parked_few, row.parked_estimate))),
    };
  }

  /** The partners with pending or parked rows, the one that waits longest first. */
  async byPartner(partnersMax: number): Promise<readonly PartnerBacklog[]> {
    const rows = await this.#homes.gather(({ engine }) => backlogByPartner.rows(engine, [partnersMax]));
    // Ids are in order of time. Partners without pending rows come last.
    const waitsSince = ({ oldest_id }: BacklogRow) => oldest_id ?? "z";
    const first = [...rows].sort((a, b) => waitsSince(a).localeCompare(waitsSince(b))).slice(0, partnersMax);
    return first.map(({ partner_id, oldest_id, pending, parked }) => ({
      partnerId: partner_id,
      pending,
      parked,
      oldestMs: oldest_id === null ? undefined : idTimeMs(oldest_id),
    }));
  }

  /** Shards that no living worker owns. */
  async unownedShards(): Promise<readonly number[]> {
    const rows = await unownedShards.rows(this.#engine);
    return rows.map(({ shard }) => shard);
  }

  /** Notifies every process of due deliveries. */
  async announceDue(payload: string): Promise<void> {
    await announceDue.run(this.#engine, [payload]);
  }
}

function sum(counts: readonly number[]): number {
  return counts.reduce((all, count) => all + count, 0);
}

/** @param few exact, up to one more than the bound */
function counted(few: number, estimate: number): number {
  return few > 10_000 ? Math.max(few, estimate) : few;
}

const countedMax = 10_000;

const counts = planned<CurrentCounts>(`
  SELECT ${countUpTo(countedMax, "parked")} AS parked,
    ${countUpTo(countedMax, "endpoints WHERE state IN ('open', 'gone')")} AS tripped,
    ${countUpTo(countedMax, "reversals WHERE state = 'PARKED'")} AS "reversalsParked",
    ${countUpTo(countedMax, "reversals WHERE state = 'PENDING'")} AS "reversalsPending",
    ${countUpTo(countedMax, "settlements WHERE tries > 1")} AS "settlementsWaiting"`);

/** What waits for a person, and at endpoints: of all partners. */
export function postgresCurrentCounts(homes: Homes): CurrentCountsStore {
  return {
    async counts() {
      const rows = await homes.gather(({ pool }) => counts.rows(pool));
      const counted = (of: keyof CurrentCounts) => Math.min(countedMax, sum(rows.map((row) => row[of])));
      return {
        parked: counted("parked"),
        tripped: counted("tripped"),
        reversalsParked: counted("reversalsParked"),
        reversalsPending: counted("reversalsPending"),
        settlementsWaiting: counted("settlementsWaiting"),
      };
    },
  };
}

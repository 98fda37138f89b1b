import type { Pool } from "pg";
import { idTimeMs } from "../ids.ts";
import type { Database } from "./database.ts";
import type { Homes } from "./homes.ts";

// One step along the index for each partner that has any: its oldest, whose id tells its time. The number is exact
// while it is small and an estimate beyond: no statement grows with the backlog.
const pendingStatus = {
  name: "pending_status",
  text: `
    WITH RECURSIVE oldest AS (
      (SELECT p.partner_id, p.id FROM pending p ORDER BY p.partner_id, p.id LIMIT 1)
      UNION ALL
      SELECT next.partner_id, next.id FROM oldest o CROSS JOIN LATERAL (
        SELECT p.partner_id, p.id FROM pending p WHERE p.partner_id > o.partner_id
        ORDER BY p.partner_id, p.id LIMIT 1) AS next)
    SELECT (SELECT min(id::text) FROM oldest) AS oldest_id,
      (SELECT count(*) FROM (SELECT FROM pending LIMIT 10001) AS few) AS few,
      (SELECT sum(n_live_tup)::bigint FROM pg_stat_user_tables
        WHERE schemaname = current_schema() AND relname ~ '^pending(_[0-9]+)?$') AS estimate`,
};

/** What waits to be delivered, for all instances. */
export interface PendingCount {
  /** Exact up to 10,000, an estimate beyond. */
  readonly count: number;
  /** When the oldest was created; undefined when nothing is pending. */
  readonly oldestMs: number | undefined;
}

/** Pending deliveries as the main thread sees them: it counts them, and tells other processes that something is due. */
export class PendingStatus {
  readonly #engine: Pool;
  readonly #homes: Homes;

  /** @param engine what every instance listens to, and where shards are */
  constructor({ engine, homes }: Pick<Database, "engine" | "homes">) {
    this.#engine = engine;
    this.#homes = homes;
  }

  /** Resolves when the database answers the engine, at every home. */
  async ping(): Promise<void> {
    await Promise.all([this.#engine.query("SELECT"), ...this.#homes.all.map(({ engine }) => engine.query("SELECT"))]);
  }

  async count(): Promise<PendingCount> {
    type Row = { oldest_id: string | null; few: number; estimate: number };
    const rows = await this.#homes.gather(async ({ engine }) => (await engine.query<Row>(pendingStatus)).rows);
    const counts = rows.map(({ few, estimate }) => (few > 10_000 ? Math.max(few, estimate) : few));
    const [oldest] = rows.flatMap(({ oldest_id }) => (oldest_id === null ? [] : [oldest_id])).sort();
    return {
      count: counts.reduce((sum, count) => sum + count, 0),
      oldestMs: oldest === undefined ? undefined : idTimeMs(oldest),
    };
  }

  /** Shards that no living worker owns. */
  async unownedShards(): Promise<number> {
    const { rows } = await this.#engine.query<{ free: number }>({
      name: "unowned_shards",
      text: "SELECT count(*) AS free FROM shards WHERE lease_id IS NULL",
    });
    return rows[0]?.free ?? 0;
  }

  /** Tells every process what is due. */
  async announceDue(payload: string): Promise<void> {
    await this.#engine.query({ name: "announce_due", text: "SELECT pg_notify('paybell_due', $1)", values: [payload] });
  }
}

import type { Pool } from "pg";
import { idTimeMs } from "../ids.ts";

// One step along the index for each partner that has any: its oldest, whose id tells its time. The numbers are exact
// while they are small and estimates beyond: no statement grows with the backlog.
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
      (SELECT n_live_tup FROM pg_stat_user_tables WHERE relname = 'pending') AS estimate,
      (SELECT count(*) FROM (SELECT FROM parked LIMIT 10001) AS few) AS parked_few,
      (SELECT n_live_tup FROM pg_stat_user_tables WHERE relname = 'parked') AS parked_estimate`,
};

/** What waits to be delivered, for all instances. */
export interface PendingCount {
  /** Exact up to 10,000, an estimate beyond. */
  readonly count: number;
  /** When the oldest was created; undefined when nothing is pending. */
  readonly oldestMs: number | undefined;
  /** Given up for now; exact up to 10,000, an estimate beyond. */
  readonly parked: number;
}

/** Pending deliveries as the main thread sees them: it counts them, and tells other processes that something is due. */
export class PendingStatus {
  readonly #engine: Pool;

  constructor(engine: Pool) {
    this.#engine = engine;
  }

  /** Resolves when the database answers the engine. */
  async ping(): Promise<void> {
    await this.#engine.query("SELECT");
  }

  async count(): Promise<PendingCount> {
    type Row = {
      oldest_id: string | null;
      few: number;
      estimate: number;
      parked_few: number;
      parked_estimate: number;
    };
    const { rows } = await this.#engine.query<Row>(pendingStatus);
    const [row] = rows;
    if (row === undefined) throw new Error("The count of what is pending has one row.");
    return {
      count: counted(row.few, row.estimate),
      oldestMs: row.oldest_id === null ? undefined : idTimeMs(row.oldest_id),
      parked: counted(row.parked_few, row.parked_estimate),
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

/** @param few exact, up to one more than is counted */
function counted(few: number, estimate: number): number {
  return few > 10_000 ? Math.max(few, estimate) : few;
}

import type { Pool } from "pg";
import { idTimeMs, type PartnerId } from "../../ids.ts";
import type { Database } from "../database/database.ts";
import type { Homes } from "../database/homes.ts";

// On Citus a table of a home is called by the number of its shard too.
const estimateOf = (table: "pending" | "parked") => `(
        SELECT sum(n_live_tup)::bigint FROM pg_stat_user_tables
        WHERE schemaname = current_schema() AND relname ~ '^${table}(_[0-9]+)?$')`;

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
      ${estimateOf("pending")} AS estimate,
      (SELECT count(*) FROM (SELECT FROM parked LIMIT 10001) AS few) AS parked_few,
      ${estimateOf("parked")} AS parked_estimate`,
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

// Those whose oldest has waited longest come first. Each count is bounded: beyond, nobody needs the number.
const backlogByPartner = {
  name: "backlog_by_partner",
  text: `
    WITH RECURSIVE waiting AS (
      (SELECT p.partner_id, p.id FROM pending p ORDER BY p.partner_id, p.id LIMIT 1)
      UNION ALL
      SELECT next.partner_id, next.id FROM waiting o CROSS JOIN LATERAL (
        SELECT p.partner_id, p.id FROM pending p WHERE p.partner_id > o.partner_id
        ORDER BY p.partner_id, p.id LIMIT 1) AS next),
    given_up AS (
      (SELECT d.partner_id, d.id FROM parked d ORDER BY d.partner_id, d.id LIMIT 1)
      UNION ALL
      SELECT next.partner_id, next.id FROM given_up o CROSS JOIN LATERAL (
        SELECT d.partner_id, d.id FROM parked d WHERE d.partner_id > o.partner_id
        ORDER BY d.partner_id, d.id LIMIT 1) AS next),
    chosen AS (
      SELECT coalesce(w.partner_id, g.partner_id) AS partner_id, w.id AS oldest_id
      FROM waiting w FULL JOIN given_up g ON g.partner_id = w.partner_id
      ORDER BY w.id NULLS LAST, g.id LIMIT $1)
    SELECT c.partner_id, c.oldest_id,
      (SELECT count(*) FROM (
        SELECT FROM pending p WHERE p.partner_id = c.partner_id LIMIT 1000) AS few) AS pending,
      (SELECT count(*) FROM (
        SELECT FROM parked d WHERE d.partner_id = c.partner_id LIMIT 1000) AS few) AS parked
    FROM chosen c`,
};

/** What one partner has waiting and parked, for all instances. */
export interface PartnerBacklog {
  readonly partnerId: PartnerId;
  /** Up to 1,000. */
  readonly pending: number;
  /** Up to 1,000. */
  readonly parked: number;
  /** When its oldest pending one was created. */
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
    type Row = {
      oldest_id: string | null;
      few: number;
      estimate: number;
      parked_few: number;
      parked_estimate: number;
    };
    const rows = await this.#homes.gather(async ({ engine }) => (await engine.query<Row>(pendingStatus)).rows);
    const [oldest] = rows.flatMap(({ oldest_id }) => (oldest_id === null ? [] : [oldest_id])).sort();
    return {
      count: sum(rows.map((row) => counted(row.few, row.estimate))),
      oldestMs: oldest === undefined ? undefined : idTimeMs(oldest),
      parked: sum(rows.map((row) => counted(row.parked_few, row.parked_estimate))),
    };
  }

  /** Of the partners that have something pending or parked, so many, the one that waits longest first. */
  async byPartner(partnersMax: number): Promise<readonly PartnerBacklog[]> {
    type Row = { partner_id: PartnerId; oldest_id: string | null; pending: number; parked: number };
    const rows = await this.#homes.gather(
      async ({ engine }) => (await engine.query<Row>({ ...backlogByPartner, values: [partnersMax] })).rows,
    );
    // Ids are in the order of their time; those with nothing pending come last.
    const waitsSince = ({ oldest_id }: Row) => oldest_id ?? "z";
    const first = [...rows].sort((a, b) => waitsSince(a).localeCompare(waitsSince(b))).slice(0, partnersMax);
    return first.map(({ partner_id, oldest_id, pending, parked }) => ({
      partnerId: partner_id,
      pending,
      parked,
      oldestMs: oldest_id === null ? undefined : idTimeMs(oldest_id),
    }));
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

function sum(counts: readonly number[]): number {
  return counts.reduce((all, count) => all + count, 0);
}

/** @param few exact, up to one more than is counted */
function counted(few: number, estimate: number): number {
  return few > 10_000 ? Math.max(few, estimate) : few;
}

import type { Pool } from "pg";
import { idTimeMs, type PartnerId } from "../../ids.ts";
import type { StoredParked, StoredTrouble } from "../../notifications/trouble.ts";
import { queryAlongIndexes } from "../database/along-indexes.ts";
import type { Database } from "../database/database.ts";
import type { Homes } from "../database/homes.ts";
import { prepared } from "../database/statement.ts";

// On Citus the name of a home's table includes the number of its shard.
const estimateOf = (table: "pending" | "parked") => `(
        SELECT sum(n_live_tup)::bigint FROM pg_stat_user_tables
        WHERE schemaname = current_schema() AND relname ~ '^${table}(_[0-9]+)?$')`;

/** One index step for each partner with rows in the table: its oldest, whose id contains its time. */
const oldestOfEach = (table: "pending" | "parked", name: string) => `${name} AS (
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
    (SELECT count(*) FROM (SELECT FROM pending LIMIT 10001) AS few) AS few,
    ${estimateOf("pending")} AS estimate,
    (SELECT count(*) FROM (SELECT FROM parked LIMIT 10001) AS few) AS parked_few,
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
    (SELECT count(*) FROM (
      SELECT FROM pending p WHERE p.partner_id = c.partner_id LIMIT 1000) AS few) AS pending,
    (SELECT count(*) FROM (
      SELECT FROM parked d WHERE d.partner_id = c.partner_id LIMIT 1000) AS few) AS parked
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

/** The oldest pending ones of a partner that are read: no query grows with its backlog. */
const readMax = 1_000;

// Few pending rows of a healthy partner have failed, and none of them for long: they are under way. A partner that is
// not active, or whose endpoint accepts nothing, may have rows that were never tried.
const troubled = (partners: string, sources: string) => `
  WITH RECURSIVE ${partners}
  SELECT o.partner_id AS "partnerId", coalesce(seen.failed_id, seen.first_id) AS id, seen.waiting,
    (extract(epoch FROM seen.due_at) * 1000)::double precision AS "dueMs",
    (extract(epoch FROM seen.schedule_start) * 1000)::double precision AS "scheduleStartMs",
    (extract(epoch FROM tried.since) * 1000)::double precision AS "sinceMs",
    (extract(epoch FROM e.opened_at) * 1000)::double precision AS "openedMs"
  FROM ${sources} o
  CROSS JOIN LATERAL (
    SELECT count(*)::integer AS waiting, (array_agg(r.id ORDER BY r.id))[1] AS first_id,
      (array_agg(r.id ORDER BY r.id) FILTER (WHERE r.attempts_made > 0))[1] AS failed_id,
      min(r.due_at) FILTER (WHERE r.attempts_made > 0) AS due_at, min(r.schedule_start) AS schedule_start
    FROM (
      SELECT p.id, p.attempts_made, p.due_at, p.schedule_start FROM pending p
      WHERE p.partner_id = o.partner_id ORDER BY p.id LIMIT ${readMax}) AS r) AS seen
  LEFT JOIN LATERAL (
    SELECT min(a.started_at) AS since
    FROM pending p JOIN attempts a ON a.partner_id = p.partner_id AND a.id = p.id AND a.round = p.round
    WHERE p.partner_id = o.partner_id AND p.id = seen.failed_id) AS tried ON true
  LEFT JOIN LATERAL (
    SELECT min(e.opened_at) AS opened_at, count(*) > 0 AS is_tripped FROM endpoints e
    WHERE e.partner_id = o.partner_id AND e.state <> 'closed') AS e ON true
  WHERE seen.waiting > 0 AND (seen.failed_id IS NOT NULL OR e.is_tripped
    OR EXISTS (SELECT FROM partners a WHERE a.id = o.partner_id AND a.state <> 'active'))
  ORDER BY seen.schedule_start LIMIT $1`;

// Its newest attempts are read until one was accepted since: of a partner that receives, that is the first.
const parked = (partners: string, sources: string) => `
  WITH RECURSIVE ${partners}
  SELECT o.partner_id AS "partnerId", few.id, few.parked,
    (extract(epoch FROM accepted.at) * 1000)::double precision AS "acceptedMs"
  FROM ${sources} o
  CROSS JOIN LATERAL (
    SELECT count(*)::integer AS parked, (array_agg(r.id ORDER BY r.id DESC))[1] AS id, max(r.parked_at) AS parked_at
    FROM (
      SELECT d.id, d.parked_at FROM parked d
      WHERE d.partner_id = o.partner_id ORDER BY d.id DESC LIMIT ${readMax}) AS r) AS few
  LEFT JOIN LATERAL (
    SELECT r.started_at AS at
    FROM (
      SELECT a.started_at, a.reason FROM attempts a
      WHERE a.partner_id = o.partner_id ORDER BY a.id DESC LIMIT ${readMax}) AS r
    WHERE r.reason IS NULL AND r.started_at > few.parked_at LIMIT 1) AS accepted ON true
  WHERE few.parked > 0
  ORDER BY accepted.at IS NULL DESC, few.id DESC LIMIT $1`;

const parkedOfAll = parked(oldestOfEach("parked", "given_up"), "given_up");
const parkedOfOne = parked("one AS (SELECT $2::uuid AS partner_id)", "one");

const ofAll = troubled(oldestOfEach("pending", "oldest"), "oldest");
const ofOne = troubled("one AS (SELECT $2::uuid AS partner_id)", "one");

/** Partners with pending notifications that were tried in vain, or that nothing can be sent to now. */
export class PostgresTrouble {
  readonly #homes: Homes;

  constructor(homes: Homes) {
    this.#homes = homes;
  }

  /** The partners whose schedules began first. */
  async all(partnersMax: number): Promise<readonly StoredTrouble[]> {
    const rows = await this.#homes.gather(({ pool }) => queryAlongIndexes<StoredTrouble>(pool, ofAll, [partnersMax]));
    return [...rows].sort((a, b) => a.scheduleStartMs - b.scheduleStartMs).slice(0, partnersMax);
  }

  async of(partnerId: PartnerId): Promise<StoredTrouble | undefined> {
    const rows = await queryAlongIndexes<StoredTrouble>(this.#homes.of(partnerId).pool, ofOne, [1, partnerId]);
    return rows[0];
  }

  /** The partners with parked notifications: first those in trouble, of each kind the one with the newest first. */
  async parked(partnersMax: number): Promise<readonly StoredParked[]> {
    const rows = await this.#homes.gather(({ pool }) =>
      queryAlongIndexes<StoredParked>(pool, parkedOfAll, [partnersMax]),
    );
    const rank = (one: StoredParked) => `${one.acceptedMs === null ? 1 : 0}${one.id}`;
    return [...rows].sort((a, b) => (rank(a) < rank(b) ? 1 : -1)).slice(0, partnersMax);
  }

  async parkedOf(partnerId: PartnerId): Promise<StoredParked | undefined> {
    const rows = await queryAlongIndexes<StoredParked>(this.#homes.of(partnerId).pool, parkedOfOne, [1, partnerId]);
    return rows[0];
  }
}

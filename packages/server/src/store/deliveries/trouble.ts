import type { PartnerId } from "../../ids.ts";
import type { StoredParked, StoredTrouble } from "../../notifications/trouble.ts";
import { queryAlongIndexes } from "../database/along-indexes.ts";
import type { Homes } from "../database/homes.ts";
import { itsEndpoint } from "../notifications/status.ts";
import { oldestOfEach } from "./pending-status.ts";

/** The oldest pending ones of a partner that are read: no query grows with its backlog. */
const readMax = 1_000;

// Few pending rows of a healthy partner have failed, and none of them for long: they are under way. A partner that is
// not active, or whose endpoint accepts nothing, may have rows that were never tried. A circuit for which nothing waits
// stays tripped, because nothing probes it.
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
      min(r.due_at) FILTER (WHERE r.attempts_made > 0) AS due_at, min(r.schedule_start) AS schedule_start,
      array_agg(DISTINCT r.queue) AS queues
    FROM (
      SELECT p.id, p.attempts_made, p.due_at, p.schedule_start, p.queue FROM pending p
      WHERE p.partner_id = o.partner_id ORDER BY p.id LIMIT ${readMax}) AS r) AS seen
  LEFT JOIN LATERAL (
    SELECT min(a.started_at) AS since
    FROM pending p JOIN attempts a ON a.partner_id = p.partner_id AND a.id = p.id AND a.round = p.round
    WHERE p.partner_id = o.partner_id AND p.id = seen.failed_id) AS tried ON true
  LEFT JOIN LATERAL (
    SELECT min(e.opened_at) AS opened_at, count(e.id) > 0 AS is_tripped
    FROM (SELECT o.partner_id, q.queue FROM unnest(seen.queues) AS q (queue)) AS p
    JOIN LATERAL (SELECT a.* FROM partners a WHERE a.id = p.partner_id LIMIT 1) AS a ON true
    ${itsEndpoint}) AS e ON true
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

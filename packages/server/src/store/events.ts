import type { Pool, PoolClient } from "pg";
import { alertKinds } from "../alerts/kinds.ts";
import type { Alert, EventStore } from "../alerts/store.ts";
import type { FeedEvent, FeedStore } from "../feed/feed.ts";
import type { FeedPosition, FeedPositions } from "../feed/stream.ts";
import { lowestId, newId, nilId, type PartnerId, shardOf } from "../ids.ts";
import type { RecordedEvent } from "../notifications/store.ts";
import type { EventKind, NewEvent } from "../telemetry/events.ts";
import { epochMs, queryAlongIndexes } from "./database/along-indexes.ts";
import type { Homes } from "./database/homes.ts";
import { prepared } from "./database/statement.ts";
import { readHistory } from "./notifications/page.ts";

/** The service itself, or all partners together, in keys that need a partner. */
export const serviceId = nilId as PartnerId;

const insert = prepared(`
  INSERT INTO events (partner_id, id, kind, subject_id, detail, alert_due_at)
  SELECT i.partner_id, i.id, i.kind, i.subject_id, i.detail, CASE WHEN i.alert
    THEN greatest(now(), i.quiet_until) END
  FROM unnest($1::uuid[], $2::uuid[], $3::text[], $4::uuid[], $5::jsonb[], $6::boolean[], $7::timestamptz[])
    AS i (partner_id, id, kind, subject_id, detail, alert, quiet_until)
  ON CONFLICT DO NOTHING`);

// A statement of its own: Citus 13 makes no valid statement of an INSERT that reads a table and asks for the time.
const quietTimes = prepared<{ kind: EventKind; until: string }>(
  "SELECT q.kind, q.until::text FROM alert_quiet q WHERE q.kind = ANY ($1::text[])",
);

// Several instances see the same condition: only one of them reports it.
const recordedSince = prepared<{ recorded: boolean }>(`
  SELECT EXISTS (
    SELECT FROM events WHERE partner_id = $1 AND id >= $2 AND kind = $3) AS recorded`);

// Alerts that were tried together are tried together again, with nothing added, because some channels may have accepted
// them.
const takeDue = prepared<Omit<Alert, "atMs"> & { createdAt: Date }>(`
  WITH head AS (
    SELECT d.id, d.kind, d.alert_group FROM events d WHERE d.alert_due_at <= now()
    ORDER BY d.alert_due_at LIMIT 1 FOR UPDATE SKIP LOCKED),
  members AS (
    SELECT d.partner_id, d.id, h.id AS head_id FROM head h JOIN events d ON d.kind = h.kind
      AND d.alert_due_at <= now() AND d.alert_group IS NOT DISTINCT FROM h.alert_group
    ORDER BY d.alert_due_at LIMIT $1 FOR UPDATE OF d SKIP LOCKED)
  UPDATE events e SET alert_due_at = now() + $2 * interval '1 second', alert_tries = e.alert_tries + 1,
    alert_group = coalesce(e.alert_group, m.head_id)
  FROM members m WHERE e.partner_id = m.partner_id AND e.id = m.id
  RETURNING nullif(e.partner_id, '${serviceId}') AS "partnerId", e.id, e.kind, e.subject_id AS "subjectId", e.detail,
    e.created_at AS "createdAt", e.alert_tries AS tries, e.alert_group AS "groupId",
    coalesce(e.alert_accepted, '{}') AS "acceptedBy"`);

const beQuiet = prepared(`
  INSERT INTO alert_quiet (kind, until) VALUES ($1, $2)
  ON CONFLICT (kind) DO UPDATE SET until = excluded.until`);

// An instance that claimed it since counts one more try: then our result is ignored, unless it was delivered. An instance
// with a quiet time of 0 takes those of a group one by one.
const settle = prepared(`
  UPDATE events SET alert_due_at = NULL WHERE alert_group = $1 AND id = ANY ($2::uuid[]) AND alert_due_at IS NOT NULL`);
const retry = prepared(`
  UPDATE events SET alert_due_at = now() + $4 * interval '1 second', alert_accepted = $5
  WHERE alert_group = $1 AND id = ANY ($2::uuid[]) AND alert_tries = $3 AND alert_due_at IS NOT NULL`);

// Sorted separately: with their order in the query, a plan scanned all events of the partner.
const aboutSubjects = `
  WITH about AS MATERIALIZED (
    SELECT e.id, e.kind, e.detail, ${epochMs("e.created_at")} AS "atMs" FROM events e
    WHERE e.partner_id = $1 AND e.subject_id = ANY ($2::uuid[]))
  SELECT kind, detail, "atMs" FROM about ORDER BY id DESC LIMIT $3`;

/** Records events on the caller's connection, and so within its transaction if one is open. */
export async function insertEvents(
  database: Pick<PoolClient, "query">,
  events: readonly NewEvent[],
  alert: boolean,
): Promise<void> {
  const alerting = new Set(events.map(({ kind }) => kind).filter((kind) => alert && alertKinds.includes(kind)));
  const quiet = await readQuietTimes(database, alerting);
  await insert.run(database, [
    events.map((event) => event.partnerId ?? serviceId),
    events.map((event) => event.id ?? newId<"event">()),
    events.map((event) => event.kind),
    events.map((event) => event.subjectId),
    events.map((event) => JSON.stringify(event.detail)),
    events.map((event) => alerting.has(event.kind)),
    events.map((event) => quiet.get(event.kind) ?? null),
  ]);
}

/** The end of the quiet time of each kind. A string, because a Date would truncate the microseconds. */
async function readQuietTimes(
  database: Pick<PoolClient, "query">,
  kinds: ReadonlySet<EventKind>,
): Promise<ReadonlyMap<EventKind, string>> {
  if (kinds.size === 0) return new Map();
  const rows = await quietTimes.rows(database, [[...kinds]]);
  return new Map(rows.map(({ kind, until }) => [kind, until]));
}

/** The events of these subjects, the oldest first; if there are too many, the newest. */
export async function readEvents(
  pool: Pool,
  partnerId: PartnerId,
  subjectIds: readonly string[],
  rowsMax: number,
): Promise<readonly RecordedEvent[]> {
  return (await queryAlongIndexes<RecordedEvent>(pool, aboutSubjects, [partnerId, subjectIds, rowsMax])).toReversed();
}

/** Events, and alerts to be sent, in PostgreSQL. */
export function postgresEvents(homes: Homes): EventStore {
  /** The claim of these alerts: they have all but their ids in common. */
  function claimed(alerts: readonly Alert[]) {
    const [first] = alerts;
    if (first === undefined) throw new Error("a claim has at least one alert");
    return { ...first, pool: homes.of(first.partnerId ?? serviceId).pool, ids: alerts.map(({ id }) => id) };
  }

  return {
    async record(events, alert) {
      const shardOfEvent = ({ partnerId }: NewEvent) => shardOf(partnerId ?? serviceId);
      await homes.askAbout(events, shardOfEvent, async ({ pool }, some) => {
        if (some.length > 0) await insertEvents(pool, some, alert);
        return [];
      });
    },

    async wasRecordedSince(kind, sinceMs) {
      const row = await recordedSince.first(homes.of(serviceId).pool, [serviceId, lowestId(sinceMs), kind]);
      return row?.recorded ?? false;
    },

    async claimDue(rowsMax, leaseS) {
      // A group belongs to one home: the next home is tried if this one has nothing due.
      for (const { pool } of homes.all) {
        const rows = await takeDue.rows(pool, [rowsMax, leaseS]);
        // Citus returns no time as a number.
        if (rows.length > 0) return rows.map(({ createdAt, ...alert }) => ({ ...alert, atMs: createdAt.getTime() }));
      }
      return [];
    },

    async settle(alerts, quietS) {
      const { pool, kind, groupId, ids } = claimed(alerts);
      if (quietS > 0) await beQuiet.run(pool, [kind, await timeIn(pool, quietS)]);
      await settle.run(pool, [groupId, ids]);
    },

    async retry(alerts, delayS, quietS) {
      const { pool, kind, groupId, ids, tries, acceptedBy } = claimed(alerts);
      if (quietS > 0) await beQuiet.run(pool, [kind, await timeIn(pool, quietS)]);
      await retry.run(pool, [groupId, ids, tries, delayS, acceptedBy]);
    },
  };
}

/**
 * A time this many seconds from now by the database's clock. A string, because a Date would truncate the microseconds.
 */
async function timeIn(pool: Pool, seconds: number): Promise<string | undefined> {
  const { rows } = await pool.query<{ at: string }>("SELECT (now() + $1 * interval '1 second')::text AS at", [seconds]);
  return rows[0]?.at;
}

const page = `
  SELECT e.id, e.kind, nullif(e.partner_id, '${serviceId}') AS "partnerId", e.subject_id AS "subjectId", e.detail,
    e.created_at AS at, e.xid::text AS xid
  FROM events e
  WHERE (e.xid, e.id) > ($1::xid8, $2::uuid) AND e.xid < $3::xid8
  ORDER BY e.xid, e.id LIMIT $4`;

type EventRow = Omit<FeedEvent, "at"> & { readonly at: Date; readonly xid: string };

export function postgresFeed({ pool }: { readonly pool: Pool }): FeedStore {
  return {
    history: () => readHistory(pool),

    async page(after, horizon, rowsMax) {
      if (rowsMax === 0) return [];
      const values = [String(after.xid), after.id, String(horizon), rowsMax];
      const rows = await queryAlongIndexes<EventRow>(pool, page, values);
      return rows.map(({ xid, at, ...event }) => ({ event: { ...event, at: at.toISOString() }, xid: BigInt(xid) }));
    },
  };
}

/** The position up to which the feed was written: one row. */
export function postgresFeedPositions(pool: Pool): FeedPositions {
  return {
    read: async () => (await pool.query<FeedPosition>("SELECT events, audit FROM feed_position")).rows[0],

    async write({ events, audit }) {
      await pool.query(
        `INSERT INTO feed_position (events, audit) VALUES ($1, $2)
         ON CONFLICT (one) DO UPDATE SET events = excluded.events, audit = excluded.audit`,
        [events, audit],
      );
    },
  };
}

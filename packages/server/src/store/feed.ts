import type { Pool } from "pg";
import type { FeedEvent, FeedStore } from "../feed/feed.ts";
import type { FeedPosition, FeedPositions } from "../feed/stream.ts";
import { queryAlongIndexes } from "./database/along-indexes.ts";
import { serviceId } from "./events.ts";
import { readHistory } from "./notifications/page.ts";

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

import { lowestId, shardOf } from "../../ids.ts";
import type { FailureCount, FigurePoint, FigureStore } from "../../notifications/overview.ts";
import { queryAlongIndexes } from "../database/along-indexes.ts";
import type { Homes } from "../database/homes.ts";
import { planned } from "../database/statement.ts";
import { serviceId } from "../events.ts";

const sum = (column: string) => `
  (SELECT array_agg(coalesce(a, 0) + coalesce(b, 0) ORDER BY no)
   FROM unnest(f.${column}, excluded.${column}) WITH ORDINALITY AS u (a, b, no))`;

// In key order, so that two instances that add to the same rows cannot deadlock.
const add = planned(`
  INSERT INTO delivery_figures AS f (partner_id, grain, at, accepted, failed, parked, attempt_ms, delivery_ms)
  SELECT i."partnerId", g.grain, date_trunc(g.grain, to_timestamp(i."minuteMs" / 1000.0), 'UTC'),
    i.accepted, i.failed, i.parked, i."attemptMs", i."deliveryMs"
  FROM json_to_recordset($1) AS i ("partnerId" uuid, "minuteMs" float8, accepted integer, failed integer,
    parked integer, "attemptMs" integer[], "deliveryMs" integer[])
  CROSS JOIN (VALUES ($2)) AS g (grain)
  ORDER BY 1, 3
  ON CONFLICT (partner_id, grain, at) DO UPDATE SET accepted = f.accepted + excluded.accepted,
    failed = f.failed + excluded.failed, parked = f.parked + excluded.parked,
    attempt_ms = ${sum("attempt_ms")}, delivery_ms = ${sum("delivery_ms")}`);

const read = `
  SELECT extract(epoch FROM f.at)::float8 * 1000 AS "atMs", f.accepted, f.failed, f.parked,
    f.attempt_ms AS "attemptMs", f.delivery_ms AS "deliveryMs"
  FROM delivery_figures f
  WHERE f.partner_id = $1 AND f.grain = $2 AND f.at >= to_timestamp($3 / 1000.0) ORDER BY f.at`;

type Failing = Awaited<ReturnType<FigureStore["failing"]>>[number];

// By hour, of which each partner has two: the index is read partner by partner.
const failing = planned<Failing>(`
  SELECT p.id AS "partnerId", f.accepted::integer, f.failed::integer, f.parked::integer
  FROM partners p CROSS JOIN LATERAL (
    SELECT sum(f.accepted) AS accepted, sum(f.failed) AS failed, sum(f.parked) AS parked FROM delivery_figures f
    WHERE f.partner_id = p.id AND f.grain = 'hour' AND f.at >= date_trunc('hour', to_timestamp($1 / 1000.0), 'UTC')
  ) AS f WHERE f.failed > 0 ORDER BY f.failed DESC, p.id LIMIT $2`);

// The attempts of the newest notifications: the query does not grow with the history.
const failures = `
  SELECT a.reason, a.http_status AS "httpStatus", count(*)::integer AS attempts,
    extract(epoch FROM max(a.started_at))::float8 * 1000 AS "lastAtMs"
  FROM (
    SELECT a.reason, a.http_status, a.started_at FROM attempts a
    WHERE a.partner_id = $1 AND a.id >= $2::uuid ORDER BY a.id DESC LIMIT 1000) AS a
  WHERE a.reason IS NOT NULL AND a.started_at >= to_timestamp($3 / 1000.0)
  GROUP BY a.reason, a.http_status ORDER BY 3 DESC, 4 DESC LIMIT 10`;

/** A notification that old may still be retried. */
const retriedMs = 7 * 86_400_000;

const dropOld = planned("DELETE FROM delivery_figures WHERE grain = $1 AND at < to_timestamp($2 / 1000.0)");

const keptMs = { minute: 25 * 3_600_000, hour: 8 * 86_400_000 } as const;

/** The figures of all instances, summed up in PostgreSQL. */
export function postgresFigures(homes: Homes): FigureStore {
  return {
    async add(counts) {
      const all = counts.map((one) => ({ ...one, partnerId: one.partnerId ?? serviceId }));
      await homes.askAbout(
        all,
        ({ partnerId }) => shardOf(partnerId),
        async ({ pool }, rows) => {
          await add.run(pool, [JSON.stringify(rows), "minute"]);
          // Several minutes may belong to one hour, and a statement updates a row only once.
          for (const ofMinute of Map.groupBy(rows, ({ minuteMs }) => minuteMs).values())
            await add.run(pool, [JSON.stringify(ofMinute), "hour"]);
          return [];
        },
      );
    },

    async read(partnerId, span, sinceMs) {
      const grain = span === "week" ? "hour" : "minute";
      const keptUnder = partnerId ?? serviceId;
      const { pool } = homes.of(keptUnder);
      return await queryAlongIndexes<FigurePoint>(pool, read, [keptUnder, grain, sinceMs]);
    },

    async failing(sinceMs, rowsMax) {
      const rows = await homes.gather(({ pool }) => failing.rows(pool, [sinceMs, rowsMax]));
      return [...rows].sort((a, b) => b.failed - a.failed || (a.partnerId < b.partnerId ? -1 : 1)).slice(0, rowsMax);
    },

    async failures(partnerId, sinceMs) {
      const { pool } = homes.of(partnerId);
      const values = [partnerId, lowestId(sinceMs - retriedMs), sinceMs];
      return await queryAlongIndexes<FailureCount>(pool, failures, values);
    },

    async dropOld(nowMs) {
      for (const grain of ["minute", "hour"] as const) {
        const values = [grain, nowMs - keptMs[grain]];
        await homes.gather(({ pool }) => dropOld.rows(pool, values));
      }
    },
  };
}

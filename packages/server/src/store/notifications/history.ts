import { lowestId, nilId } from "../../ids.ts";
import type { HistoryRow, HistorySpan, HistoryStore } from "../../notifications/history-export.ts";
import { epochMs } from "../database/along-indexes.ts";
import type { Home, Homes } from "../database/homes.ts";
import { planned } from "../database/statement.ts";

const pageRows = 200;

const stateOf = `
  CASE WHEN EXISTS (SELECT FROM pending p WHERE p.partner_id = n.partner_id AND p.id = n.id) THEN 'pending'
    WHEN EXISTS (SELECT FROM parked p WHERE p.partner_id = n.partner_id AND p.id = n.id) THEN 'parked'
    ELSE 'accepted' END`;

// The order is that of the key of a day's table: a page is read where the one before ended.
const page = planned<HistoryRow>(`
  SELECT n.partner_id AS "partnerId", n.id, n.transaction_id AS "transactionId", n.command, n.callback_url AS "callBackUrl",
    n.content::text AS content, ${epochMs("n.created_at")} AS "createdAtMs", ${stateOf} AS state,
    coalesce((
      SELECT json_agg(json_build_object('round', a.round, 'attemptNo', a.attempt_no,
        'startedAtMs', ${epochMs("a.started_at")}, 'durationMs', a.duration_ms, 'url', a.url,
        'address', a.address, 'httpStatus', a.http_status, 'reason', a.reason, 'keyId', a.key_id)
        ORDER BY a.round, a.attempt_no, a.lease_id)
      FROM attempts a WHERE a.partner_id = n.partner_id AND a.id = n.id AND a.id >= $1 AND a.id < $2), '[]') AS attempts
  FROM notifications n
  WHERE n.id >= $1 AND n.id < $2 AND (n.partner_id, n.id) > ($3, $4) AND ($5::uuid IS NULL OR n.partner_id = $5)
  ORDER BY n.partner_id, n.id LIMIT ${pageRows}`);

// Few wait at any time: their index has only them.
const waits = planned(`
  SELECT FROM transactions t
  WHERE t.notify_at IS NOT NULL AND t.notification_id >= $1 AND t.notification_id < $2
    AND ($3::uuid IS NULL OR t.partner_id = $3)
  LIMIT 1`);

/** Reads notifications with their attempts, by partner and id. */
export function postgresHistory(homes: Homes): HistoryStore {
  return {
    async keptFromMs() {
      const kept = await homes.gather(
        async ({ pool }) => (await pool.query<{ kept_from: Date }>("SELECT kept_from FROM history")).rows,
      );
      return Math.max(...kept.map(({ kept_from: keptFrom }) => keptFrom.getTime()));
    },

    async isWaitedFor(span) {
      const values = [...idsOf(span), span.partnerId ?? null];
      const found = await homes.gather(async ({ pool }) => [await waits.run(pool, values)]);
      return found.some((rows) => rows > 0);
    },

    async *pages(span) {
      const { partnerId } = span;
      const asked = partnerId === undefined ? homes.all : [homes.of(partnerId)];
      for (const home of asked) yield* pagesOf(home, span);
    },
  };
}

function idsOf({ fromMs, beforeMs }: HistorySpan): readonly [string, string] {
  return [lowestId(fromMs), lowestId(beforeMs)];
}

async function* pagesOf({ pool }: Home, { partnerId, ...span }: HistorySpan) {
  const ids = idsOf(span);
  let after = [partnerId ?? nilId, nilId];
  for (;;) {
    const rows = await page.rows(pool, [...ids, ...after, partnerId ?? null]);
    if (rows.length > 0) yield rows;
    const last = rows.at(-1);
    if (last === undefined || rows.length < pageRows) return;
    after = [last.partnerId, last.id];
  }
}

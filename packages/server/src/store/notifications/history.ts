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

/** Reads notifications with their attempts, by partner and id. */
export function postgresHistory(homes: Homes): HistoryStore {
  return {
    async keptFromMs() {
      const kept = await homes.gather(
        async ({ pool }) => (await pool.query<{ kept_from: Date }>("SELECT kept_from FROM history")).rows,
      );
      return Math.max(...kept.map(({ kept_from: keptFrom }) => keptFrom.getTime()));
    },

    async *pages(span) {
      const { partnerId } = span;
      const asked = partnerId === undefined ? homes.all : [homes.of(partnerId)];
      for (const home of asked) yield* pagesOf(home, span);
    },
  };
}

async function* pagesOf({ pool }: Home, { fromMs, beforeMs, partnerId }: HistorySpan) {
  const ids = [lowestId(fromMs), lowestId(beforeMs)];
  let after = [partnerId ?? nilId, nilId];
  for (;;) {
    const rows = await page.rows(pool, [...ids, ...after, partnerId ?? null]);
    if (rows.length > 0) yield rows;
    const last = rows.at(-1);
    if (last === undefined || rows.length < pageRows) return;
    after = [last.partnerId, last.id];
  }
}

import type { ChainId } from "../../ids.ts";
import type { CardStore } from "../../ledger/exchange/card-vault.ts";
import type { Home, Homes } from "../database/homes.ts";
import { prepared } from "../database/statement.ts";
import { answerable, isStanding, openReversal } from "./conditions.ts";

const find = prepared<{ chain_id: ChainId; sealed: Buffer }>(
  "SELECT c.chain_id, c.sealed FROM cards c WHERE c.partner_id = $1 AND c.chain_id = ANY ($2::uuid[])",
);

// Walks from the first transaction of a chain to its follow-ups. A card is needed while one of them is in flight, has a
// Reversal that is not done or was requested in the last two days (a late approval repeats it), is in an unsettled
// batch, or is a PreAuth that can still be completed.
const sweep = prepared<{ scanned: number; deleted: number }>(`
    WITH due AS MATERIALIZED (
      SELECT c.partner_id, c.chain_id FROM cards c
      WHERE c.look_at <= now() ORDER BY c.look_at LIMIT $1 FOR UPDATE SKIP LOCKED),
    judged AS MATERIALIZED (
      SELECT d.partner_id, d.chain_id, EXISTS (
        WITH RECURSIVE chain AS (
          SELECT t.* FROM transactions t WHERE t.partner_id = d.partner_id AND t.id = d.chain_id
          UNION ALL
          SELECT t.* FROM chain c JOIN transactions t ON t.partner_id = d.partner_id AND t.original_id = c.id)
        SELECT FROM chain t
        LEFT JOIN terminals r ON r.partner_id = t.partner_id AND r.tid = t.tid
        LEFT JOIN reversals v ON v.partner_id = t.partner_id AND v.transaction_id = t.id
        WHERE t.state = 'INIT' OR v.state ${openReversal} OR v.created_at > now() - ${answerable}
          OR (${isStanding} AND (
            t.batch_id = r.batch_id
            OR (t.command = 'PREAUTH' AND t.successor_state IS DISTINCT FROM 'done'
              AND t.created_at > now() - $2 * interval '1 day')))) AS needed
      FROM due d),
    kept AS (
      UPDATE cards c SET look_at = now() + interval '5 minutes' FROM judged j
      WHERE j.needed AND c.partner_id = j.partner_id AND c.chain_id = j.chain_id),
    gone AS (
      DELETE FROM cards c USING judged j
      WHERE NOT j.needed AND c.partner_id = j.partner_id AND c.chain_id = j.chain_id)
    SELECT count(*)::integer AS scanned, count(*) FILTER (WHERE NOT needed)::integer AS deleted FROM judged`);

const rowsMax = 500;

export function postgresCards(homes: Homes): CardStore {
  return {
    async find(partnerId, chainIds) {
      const rows = await find.rows(homes.of(partnerId).engine, [partnerId, chainIds]);
      return new Map(rows.map(({ chain_id, sealed }) => [chain_id, sealed]));
    },
  };
}

/** Deletes cards that no message can need any more, among those not checked for five minutes. @returns their number */
export async function sweepCards(homes: Homes, preAuthDays: number): Promise<number> {
  const deleted = await homes.gather(async (home) => [await sweepHome(home, preAuthDays)]);
  return deleted.reduce((all, one) => all + one, 0);
}

async function sweepHome({ engine }: Home, preAuthDays: number): Promise<number> {
  let all = 0;
  for (;;) {
    const { scanned, deleted } = (await sweep.first(engine, [rowsMax, preAuthDays])) ?? { scanned: 0, deleted: 0 };
    all += deleted;
    if (scanned < rowsMax) return all;
  }
}

import type { PoolClient } from "pg";
import type { PartnerId } from "../../ids.ts";
import type { Init } from "../../ledger/store.ts";

// In key order, like every statement that locks several rows.
const claim = {
  name: "claim_terminals",
  text: `
    INSERT INTO terminal_claims (mid, tid, partner_id, is_registered)
    SELECT mid, tid, partner_id, false FROM unnest($1::text[], $2::text[], $3::uuid[]) AS i (mid, tid, partner_id)
    ORDER BY mid, tid
    ON CONFLICT DO NOTHING`,
};
const holders = {
  name: "terminal_holders",
  text: `
    SELECT i.partner_id, i.tid, c.is_registered
    FROM unnest($1::text[], $2::text[], $3::uuid[]) AS i (mid, tid, partner_id)
    CROSS JOIN LATERAL (
      SELECT c.partner_id, c.is_registered FROM terminal_claims c
      WHERE c.acquirer = '' AND c.mid = i.mid AND c.tid = i.tid LIMIT 1) AS c
    WHERE c.partner_id <> i.partner_id`,
};

/**
 * Claims terminals for partners whose first command arrives. A claim that waited for another one sees it only in a
 * separate statement. @returns the keys of terminals that belong to another partner
 */
export async function claimTerminals(client: PoolClient, inits: readonly Init[]): Promise<ReadonlySet<string>> {
  if (inits.length === 0) return new Set();
  const values = [inits.map(({ mid }) => mid), inits.map(({ tid }) => tid), inits.map(({ partnerId }) => partnerId)];
  await client.query({ ...claim, values });
  const { rows } = await client.query<{ partner_id: PartnerId; tid: string; is_registered: boolean }>({
    ...holders,
    values,
  });
  const shares = new Set(inits.filter(({ sharesTerminals }) => sharesTerminals).map(({ partnerId }) => partnerId));
  const taken = rows.filter(({ partner_id, is_registered }) => is_registered || !shares.has(partner_id));
  return new Set(taken.map(({ partner_id, tid }) => `${partner_id} ${tid}`));
}

/**
 * Registers a terminal for the operator: the partner's own claim becomes a registration. False if it belongs to another
 * partner.
 */
export async function registerTerminalClaim(
  client: PoolClient,
  terminal: { readonly partnerId: PartnerId; readonly acquirer: string; readonly mid: string; readonly tid: string },
): Promise<boolean> {
  const { partnerId, acquirer, mid, tid } = terminal;
  await client.query(
    "DELETE FROM terminal_claims WHERE partner_id = $1 AND tid = $2 AND (mid <> $3 OR acquirer <> $4)",
    [partnerId, tid, mid, acquirer],
  );
  const { rowCount } = await client.query(
    `INSERT INTO terminal_claims AS c (acquirer, mid, tid, partner_id, is_registered) VALUES ($4, $1, $2, $3, true)
     ON CONFLICT (acquirer, mid, tid) DO UPDATE SET is_registered = true WHERE c.partner_id = excluded.partner_id`,
    [mid, tid, partnerId, acquirer],
  );
  return rowCount === 1;
}

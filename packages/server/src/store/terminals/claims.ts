import type { PoolClient } from "pg";
import type { PartnerId } from "../../ids.ts";
import type { Init } from "../../ledger/store.ts";

// The claims of a partner with a quota are made one transaction after the other: each sees those before it. In order,
// like every statement that locks several.
const lockQuotas = {
  name: "lock_claim_quotas",
  text: `
    SELECT pg_advisory_xact_lock(hashtextextended(partner_id, 0))
    FROM (SELECT DISTINCT partner_id::text FROM unnest($1::uuid[]) AS i (partner_id) ORDER BY 1) AS ordered`,
};
// In key order, like every statement that locks several rows.
const claim = {
  name: "claim_terminals",
  text: `
    INSERT INTO terminal_claims (mid, tid, partner_id, is_registered)
    SELECT mid, tid, partner_id, false FROM unnest($1::text[], $2::text[], $3::uuid[]) AS i (mid, tid, partner_id)
    ORDER BY mid, tid
    ON CONFLICT DO NOTHING
    RETURNING mid, tid, partner_id`,
};
// Only for partners that have just claimed one, at most quota + 1 rows each.
const counts = {
  name: "open_claims",
  text: `
    SELECT i.partner_id, c.count
    FROM unnest($1::uuid[], $2::integer[]) AS i (partner_id, claims_max)
    CROSS JOIN LATERAL (
      SELECT count(*)::integer AS count FROM (
        SELECT FROM terminal_claims c WHERE c.partner_id = i.partner_id AND NOT c.is_registered
        LIMIT i.claims_max + $3) AS found) AS c`,
};
const drop = {
  name: "drop_claims",
  text: `
    DELETE FROM terminal_claims c USING unnest($1::text[], $2::text[], $3::uuid[]) AS i (mid, tid, partner_id)
    WHERE c.acquirer = '' AND c.mid = i.mid AND c.tid = i.tid AND c.partner_id = i.partner_id AND NOT c.is_registered`,
};

/** The keys of terminals that may not be used, and what this transaction has claimed. */
export interface Claimed {
  readonly taken: ReadonlySet<string>;
  readonly beyondQuota: ReadonlySet<string>;
  readonly fresh: readonly FreshClaim[];
}

interface FreshClaim {
  readonly mid: string;
  readonly tid: string;
  readonly partner_id: PartnerId;
}
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
 * separate statement.
 */
export async function claimTerminals(client: PoolClient, inits: readonly Init[]): Promise<Claimed> {
  if (inits.length === 0) return { taken: new Set(), beyondQuota: new Set(), fresh: [] };
  const values = [inits.map(({ mid }) => mid), inits.map(({ tid }) => tid), inits.map(({ partnerId }) => partnerId)];
  // Claims shut nobody out where terminals are shared.
  const limited = inits.filter(({ sharesTerminals }) => !sharesTerminals);
  if (limited.length > 0) await client.query({ ...lockQuotas, values: [limited.map(({ partnerId }) => partnerId)] });
  const { rows: fresh } = await client.query<FreshClaim>({ ...claim, values });
  const { rows } = await client.query<{ partner_id: PartnerId; tid: string; is_registered: boolean }>({
    ...holders,
    values,
  });
  const shares = new Set(inits.filter(({ sharesTerminals }) => sharesTerminals).map(({ partnerId }) => partnerId));
  const taken = rows.filter(({ partner_id, is_registered }) => is_registered || !shares.has(partner_id));
  return {
    taken: new Set(taken.map(({ partner_id, tid }) => `${partner_id} ${tid}`)),
    beyondQuota: await findBeyondQuota(client, limited, fresh),
    fresh,
  };
}

/** The newest claims of a partner that has too many of them. */
async function findBeyondQuota(
  client: PoolClient,
  limited: readonly Init[],
  fresh: readonly FreshClaim[],
): Promise<ReadonlySet<string>> {
  const claimants = new Set(fresh.map(({ partner_id }) => partner_id));
  const claiming = limited.filter(({ partnerId }) => claimants.has(partnerId));
  const quotas = new Map(claiming.map(({ partnerId, claimsMax }) => [partnerId, claimsMax]));
  if (quotas.size === 0) return new Set();
  const values = [[...quotas.keys()], [...quotas.values()], fresh.length];
  const { rows } = await client.query<{ partner_id: PartnerId; count: number }>({ ...counts, values });
  const beyond = rows.flatMap(({ partner_id, count }) => {
    const own = fresh.filter((one) => one.partner_id === partner_id);
    const free = Math.max(0, own.length - Math.max(0, count - (quotas.get(partner_id) ?? 0)));
    return own.slice(free);
  });
  return new Set(beyond.map(({ partner_id, tid }) => `${partner_id} ${tid}`));
}

/** Without this, commands that were refused would keep terminals from others. */
export async function dropUnusedClaims(
  client: PoolClient,
  fresh: readonly FreshClaim[],
  used: ReadonlySet<string>,
): Promise<void> {
  const unused = fresh.filter(({ partner_id, tid }) => !used.has(`${partner_id} ${tid}`));
  if (unused.length === 0) return;
  const values = [
    unused.map(({ mid }) => mid),
    unused.map(({ tid }) => tid),
    unused.map(({ partner_id }) => partner_id),
  ];
  await client.query({ ...drop, values });
}

/** A terminal as the acquirer knows it. */
export interface ClaimedTerminal {
  readonly acquirer: string;
  readonly mid: string;
  readonly tid: string;
}

/**
 * Registers a terminal for the operator: the partner's own claim becomes a registration. False if it belongs to another
 * partner.
 */
export async function registerTerminalClaim(
  client: PoolClient,
  terminal: ClaimedTerminal & { readonly partnerId: PartnerId },
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

export async function holderOf(
  client: PoolClient,
  { acquirer, mid, tid }: ClaimedTerminal,
): Promise<{ readonly partnerId: PartnerId; readonly isRegistered: boolean } | undefined> {
  const { rows } = await client.query<{ partner_id: PartnerId; is_registered: boolean }>(
    "SELECT partner_id, is_registered FROM terminal_claims WHERE acquirer = $1 AND mid = $2 AND tid = $3",
    [acquirer, mid, tid],
  );
  const [row] = rows;
  return row && { partnerId: row.partner_id, isRegistered: row.is_registered };
}

/** Turns a claim into the registration of another partner. In one step, so that no command claims it in between. */
export async function transferClaim(
  client: PoolClient,
  { acquirer, mid, tid }: ClaimedTerminal,
  from: PartnerId,
  to: PartnerId,
): Promise<boolean> {
  const { rowCount } = await client.query(
    `UPDATE terminal_claims SET partner_id = $5, is_registered = true
     WHERE acquirer = $1 AND mid = $2 AND tid = $3 AND partner_id = $4 AND NOT is_registered`,
    [acquirer, mid, tid, from, to],
  );
  return rowCount === 1;
}

/** Releases a partner's terminal. @returns what it was claimed or registered as */
export async function releaseClaims(
  client: PoolClient,
  partnerId: PartnerId,
  tid: string,
): Promise<readonly Omit<ClaimedTerminal, "tid">[]> {
  const { rows } = await client.query<Omit<ClaimedTerminal, "tid">>(
    "DELETE FROM terminal_claims WHERE partner_id = $1 AND tid = $2 RETURNING mid, acquirer",
    [partnerId, tid],
  );
  return rows;
}

import type { PoolClient } from "pg";
import type { PartnerId } from "../../ids.ts";
import type { TerminalAcquirerStore } from "../../ledger/exchange/terminal-acquirers.ts";
import type { Init } from "../../ledger/store.ts";
import type { FoundTerminal, TerminalStore, UpsertedTerminal } from "../../partners/store.ts";
import type { Terminal } from "../../partners/terminal.ts";
import type { Homes } from "../database/homes.ts";
import { planned, prepared } from "../database/statement.ts";
import { appendEntry, seen } from "../operators/audit.ts";
import { isStanding } from "../transactions/conditions.ts";

// The claims of a partner with a quota are made one transaction after the other: each sees those before it. In order,
// like every statement that locks several.
const lockQuotas = prepared(`
  SELECT pg_advisory_xact_lock(hashtextextended(partner_id, 0))
  FROM (SELECT DISTINCT partner_id::text FROM unnest($1::uuid[]) AS i (partner_id) ORDER BY 1) AS ordered`);
// In key order, like every statement that locks several rows.
const claim = prepared<FreshClaim>(`
  INSERT INTO terminal_claims (mid, tid, partner_id, is_registered)
  SELECT mid, tid, partner_id, false FROM unnest($1::text[], $2::text[], $3::uuid[]) AS i (mid, tid, partner_id)
  ORDER BY mid, tid
  ON CONFLICT DO NOTHING
  RETURNING mid, tid, partner_id`);
// Only for partners that have just claimed one, at most quota + 1 rows each.
const counts = prepared<{ partner_id: PartnerId; count: number }>(`
    SELECT i.partner_id, c.count
    FROM unnest($1::uuid[], $2::integer[]) AS i (partner_id, claims_max)
    CROSS JOIN LATERAL (
      SELECT count(*)::integer AS count FROM (
        SELECT FROM terminal_claims c WHERE c.partner_id = i.partner_id AND NOT c.is_registered
        LIMIT i.claims_max + $3) AS found) AS c`);
const drop = prepared(`
  DELETE FROM terminal_claims c USING unnest($1::text[], $2::text[], $3::uuid[]) AS i (mid, tid, partner_id)
  WHERE c.acquirer = '' AND c.mid = i.mid AND c.tid = i.tid AND c.partner_id = i.partner_id`);

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
const holders = prepared<{ partner_id: PartnerId; tid: string; is_registered: boolean }>(`
    SELECT i.partner_id, i.tid, c.is_registered
    FROM unnest($1::text[], $2::text[], $3::uuid[]) AS i (mid, tid, partner_id)
    CROSS JOIN LATERAL (
      SELECT c.partner_id, c.is_registered FROM terminal_claims c
      WHERE c.acquirer = '' AND c.mid = i.mid AND c.tid = i.tid LIMIT 1) AS c
    WHERE c.partner_id <> i.partner_id`);

/**
 * Claims terminals for partners whose first command arrives. A claim that waited for another one sees it only in a
 * separate statement.
 */
export async function claimTerminals(client: PoolClient, inits: readonly Init[]): Promise<Claimed> {
  if (inits.length === 0) return { taken: new Set(), beyondQuota: new Set(), fresh: [] };
  const values = [inits.map(({ mid }) => mid), inits.map(({ tid }) => tid), inits.map(({ partnerId }) => partnerId)];
  // Claims exclude nobody where terminals are shared.
  const limited = inits.filter(({ sharesTerminals }) => !sharesTerminals);
  if (limited.length > 0) await lockQuotas.run(client, [limited.map(({ partnerId }) => partnerId)]);
  const fresh = await claim.rows(client, values);
  const rows = await holders.rows(client, values);
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
  const rows = await counts.rows(client, values);
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
  await drop.run(client, values);
}

/** A terminal as the acquirer knows it. */
interface ClaimedTerminal {
  readonly acquirer: string;
  readonly mid: string;
  readonly tid: string;
}

/**
 * Registers a terminal for the operator: the partner's own claim becomes a registration. False if it belongs to another
 * partner.
 */
async function registerTerminalClaim(
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

async function holderOf(
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
async function transferClaim(
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
async function releaseClaims(
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

const columns = "tid, mid, merchant_id, merchant_name, merchant_address, device_id, app_name, acquirer";
const shown = `tid, mid, merchant_id AS "merchantId", merchant_name AS "merchantName",
  merchant_address AS "merchantAddress", device_id AS "deviceId", app_name AS "appName", acquirer`;

const insert = `
  INSERT INTO terminals (partner_id, ${columns}) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`;
const insertNew = `${insert} ON CONFLICT DO NOTHING RETURNING ${shown}`;
const upsert = `
  ${insert}
  ON CONFLICT (partner_id, tid) DO UPDATE SET mid = excluded.mid, merchant_id = excluded.merchant_id,
    merchant_name = excluded.merchant_name, merchant_address = excluded.merchant_address,
    device_id = excluded.device_id, app_name = excluded.app_name, acquirer = excluded.acquirer
  RETURNING ${shown}`;

// A separate statement: one that waits for this lock sees other tables as they were before it waited, and would miss a
// command that began meanwhile.
const lockTerminal = planned("SELECT FROM terminals WHERE partner_id = $1 AND tid = $2 FOR UPDATE");

// A terminal is busy if a transaction of its batch counts, may come to count, or is in flight, or a PreAuth can still be
// completed; or if its next Settlement has a batch to report that was settled late. Nothing begins on it while its row is
// locked.
const terminalState = planned<Terminal & { readonly is_busy: boolean }>(`
  SELECT ${shown}, r.batch_closing OR r.late_settlement IS NOT NULL
      OR EXISTS (SELECT FROM transactions t
        WHERE t.partner_id = r.partner_id AND t.batch_id = r.batch_id AND ${isStanding})
      OR EXISTS (SELECT FROM transactions t
        WHERE t.partner_id = r.partner_id AND t.tid = r.tid AND t.state = 'INIT')
      OR EXISTS (SELECT FROM reversals v
        WHERE v.partner_id = r.partner_id AND v.tid = r.tid AND v.state = 'PENDING')
      OR EXISTS (SELECT FROM reversals v JOIN transactions t ON t.partner_id = v.partner_id AND t.id = v.transaction_id
        WHERE v.partner_id = r.partner_id AND v.state = 'PARKED' AND t.batch_id = r.batch_id)
      OR EXISTS (SELECT FROM transactions t
        WHERE t.partner_id = r.partner_id AND t.tid = r.tid AND t.command = 'PREAUTH' AND ${isStanding}
          AND t.successor_id IS NULL
          AND t.created_at > now() - $3 * interval '1 day') AS is_busy
  FROM terminals r WHERE r.partner_id = $1 AND r.tid = $2`);

const acquirerByName = planned("SELECT FROM acquirers WHERE name = $1 FOR SHARE");

const findAcquirer = prepared<{ acquirer: string }>(
  "SELECT acquirer FROM terminals WHERE partner_id = $1 AND tid = $2",
);

const registeredDevice = prepared("SELECT FROM terminals WHERE partner_id = $1 AND device_id = $2 LIMIT 1");

/** A terminal that was claimed, and then not used. */
const unnamed = { merchantId: "", merchantName: "", merchantAddress: "", deviceId: "", appName: "" };

/** Registered terminals in PostgreSQL; their numbers are assigned with each command. */
export function postgresTerminals(homes: Homes): TerminalStore & TerminalAcquirerStore {
  /** Gives a terminal that a command of the holder claimed to another partner, unless money is open on it. */
  async function takeOver(holder: PartnerId, to: PartnerId, terminal: Terminal, preAuthDays: number): Promise<boolean> {
    const { tid, mid, acquirer } = terminal;
    return await inTransaction(
      holder,
      async (client) => {
        const known = await lockState(client, holder, tid, preAuthDays);
        if (known?.isBusy || !(await transferClaim(client, terminal, holder, to))) return false;
        // A row without a claim would let the holder use the terminal further.
        await client.query("DELETE FROM terminals WHERE partner_id = $1 AND tid = $2 AND mid = $3 AND acquirer = $4", [
          holder,
          tid,
          mid,
          acquirer,
        ]);
        return true;
      },
      (isTransferred) => isTransferred,
    );
  }

  /** At the home of a partner. */
  async function inTransaction<Result>(
    partnerId: PartnerId,
    work: (client: PoolClient) => Promise<Result>,
    isToBeKept: (result: Result) => boolean,
  ): Promise<Result> {
    const { pool } = homes.of(partnerId);
    const client = await pool.connect();
    try {
      await client.query("BEGIN");
      const result = await work(client);
      if (isToBeKept(result)) await appendEntry(client, pool);
      await client.query(isToBeKept(result) ? "COMMIT" : "ROLLBACK");
      client.release();
      return result;
    } catch (error) {
      client.release(true);
      throw error;
    }
  }

  return {
    async upsert(partnerId, terminal, preAuthDays) {
      const put = () =>
        inTransaction(
          partnerId,
          (client) => upsertUnderLock(client, partnerId, terminal, preAuthDays),
          ({ outcome }) => outcome === "put",
        );
      const first = await put();
      if (first.outcome !== "taken" || first.isRegistered) return first;
      return (await takeOver(first.holder, partnerId, terminal, preAuthDays)) ? await put() : first;
    },

    remove: (partnerId, tid, preAuthDays) =>
      inTransaction(
        partnerId,
        async (client) => {
          const known = await lockState(client, partnerId, tid, preAuthDays);
          if (known?.isBusy) return { outcome: "busy" };
          const [claim] = await releaseClaims(client, partnerId, tid);
          await client.query("DELETE FROM terminals WHERE partner_id = $1 AND tid = $2", [partnerId, tid]);
          const terminal = known?.terminal ?? (claim && { ...unnamed, tid, ...claim });
          return terminal === undefined ? { outcome: "not_found" } : { outcome: "removed", terminal };
        },
        ({ outcome }) => outcome === "removed",
      ),

    async acquirerOf(partnerId, tid) {
      const { engine } = homes.of(partnerId);
      const row = await findAcquirer.first(engine, [partnerId, tid]);
      return row?.acquirer ?? "";
    },

    async find(partnerId, tid) {
      const { rows } = await seen(homes.of(partnerId).pool).query<Terminal>(
        `SELECT ${shown} FROM terminals WHERE partner_id = $1 AND tid = $2`,
        [partnerId, tid],
      );
      return rows[0];
    },

    async list(partnerId, after, limit) {
      const { rows } = await homes
        .of(partnerId)
        .pool.query<Terminal>(
          `SELECT ${shown} FROM terminals WHERE partner_id = $1 AND tid > $2 ORDER BY tid LIMIT $3`,
          [partnerId, after ?? "", limit],
        );
      return rows;
    },

    async search(text, limit) {
      const answers = await Promise.all(
        homes.all.map(({ pool }) =>
          pool.query<FoundTerminal>(
            `SELECT partner_id AS "partnerId", ${shown} FROM terminals
             WHERE tid = $1 OR mid = $1 OR starts_with(lower(merchant_name), lower($1))
             ORDER BY tid, partner_id LIMIT $2`,
            [text, limit],
          ),
        ),
      );
      const rows = answers.flatMap((answer) => answer.rows).sort((a, z) => (a.tid < z.tid ? -1 : 1));
      return rows.slice(0, limit);
    },
  };
}

/** Whether a partner has a terminal with this deviceId. */
export async function isRegisteredDevice(homes: Homes, partnerId: PartnerId, deviceId: string): Promise<boolean> {
  return (await registeredDevice.run(homes.of(partnerId).engine, [partnerId, deviceId])) > 0;
}

/** Nothing begins on the terminal until the transaction ends. */
async function lockState(
  client: PoolClient,
  partnerId: PartnerId,
  tid: string,
  preAuthDays: number,
): Promise<{ readonly terminal: Terminal; readonly isBusy: boolean } | undefined> {
  await lockTerminal.run(client, [partnerId, tid]);
  const row = await terminalState.first(client, [partnerId, tid, preAuthDays]);
  if (row === undefined) return undefined;
  const { is_busy: isBusy, ...terminal } = row;
  return { terminal, isBusy };
}

async function upsertUnderLock(
  client: PoolClient,
  partnerId: PartnerId,
  terminal: Terminal,
  preAuthDays: number,
): Promise<UpsertedTerminal> {
  const { tid, mid, merchantId, merchantName, merchantAddress, deviceId, appName, acquirer } = terminal;
  const known = await lockState(client, partnerId, tid, preAuthDays);
  const moves = known !== undefined && (known.terminal.mid !== mid || known.terminal.acquirer !== acquirer);
  if (moves && known.isBusy) return { outcome: "busy" };
  // Held until the terminal's row is written: a removal of the acquirer waits, and then finds it in use.
  const named = acquirer === "" ? 1 : await acquirerByName.run(client, [acquirer]);
  if (named !== 1) return { outcome: "no_such_acquirer" };
  if (!(await registerTerminalClaim(client, { partnerId, acquirer, mid, tid }))) {
    const holder = await holderOf(client, terminal);
    // Released meanwhile.
    if (holder === undefined) return await upsertUnderLock(client, partnerId, terminal, preAuthDays);
    return { outcome: "taken", holder: holder.partnerId, isRegistered: holder.isRegistered };
  }
  const values = [partnerId, tid, mid, merchantId, merchantName, merchantAddress, deviceId, appName, acquirer];
  const { rows } = await client.query<Terminal>(known === undefined ? insertNew : upsert, values);
  // Its first command has inserted it meanwhile.
  if (rows.length === 0) return await upsertUnderLock(client, partnerId, terminal, preAuthDays);
  return { outcome: "put", terminal: rows[0] ?? terminal };
}

import type { PoolClient } from "pg";
import type { PartnerId } from "../../ids.ts";
import type { TerminalAcquirerStore } from "../../ledger/terminal-acquirers.ts";
import type { FoundTerminal, RemovedTerminal, TerminalStore, UpsertedTerminal } from "../../partners/store.ts";
import type { Terminal } from "../../partners/terminal.ts";
import type { Homes } from "../database/homes.ts";
import { appendEntry, seen } from "../operators/acting.ts";
import { holderOf, registerTerminalClaim, releaseClaims, transferClaim } from "./claims.ts";

const shown = "tid, mid, merchant_id, merchant_name, merchant_address, device_id, app_name, acquirer";

const insert = `
  INSERT INTO terminals (partner_id, ${shown}) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`;
const insertNew = `${insert} ON CONFLICT DO NOTHING RETURNING ${shown}`;
const upsert = `
  ${insert}
  ON CONFLICT (partner_id, tid) DO UPDATE SET mid = excluded.mid, merchant_id = excluded.merchant_id,
    merchant_name = excluded.merchant_name, merchant_address = excluded.merchant_address,
    device_id = excluded.device_id, app_name = excluded.app_name, acquirer = excluded.acquirer
  RETURNING ${shown}`;

// A separate statement: one that waits for this lock sees other tables as they were before it waited, and would miss a
// command that began meanwhile.
const lockTerminal = "SELECT FROM terminals WHERE partner_id = $1 AND tid = $2 FOR UPDATE";

// A terminal is busy if a transaction of its batch counts or is in flight, or a PreAuth can still be completed. Nothing
// begins on it while its row is locked.
const standingTerminal = `
  SELECT ${shown}, r.batch_closing
      OR EXISTS (SELECT FROM transactions t
        WHERE t.partner_id = r.partner_id AND t.batch_id = r.batch_id AND t.state = 'SUCCESS'
          AND t.reversal_state IS DISTINCT FROM 'done')
      OR EXISTS (SELECT FROM transactions t
        WHERE t.partner_id = r.partner_id AND t.tid = r.tid AND t.state = 'INIT')
      OR EXISTS (SELECT FROM reversals v
        WHERE v.partner_id = r.partner_id AND v.tid = r.tid AND v.state = 'PENDING')
      OR EXISTS (SELECT FROM transactions t
        WHERE t.partner_id = r.partner_id AND t.tid = r.tid AND t.command = 'PREAUTH' AND t.state = 'SUCCESS'
          AND t.successor_id IS NULL AND t.reversal_state IS DISTINCT FROM 'done'
          AND t.created_at > now() - $3 * interval '1 day') AS is_busy
  FROM terminals r WHERE r.partner_id = $1 AND r.tid = $2`;

const acquirerByName = "SELECT FROM acquirers WHERE name = $1 FOR SHARE";

const findAcquirer = {
  name: "acquirer_of_terminal",
  text: "SELECT acquirer FROM terminals WHERE partner_id = $1 AND tid = $2",
};

const registeredDevice = {
  name: "registered_device",
  text: "SELECT FROM terminals WHERE partner_id = $1 AND device_id = $2 LIMIT 1",
};

interface TerminalRow {
  readonly tid: string;
  readonly mid: string;
  readonly merchant_id: string;
  readonly merchant_name: string;
  readonly merchant_address: string;
  readonly device_id: string;
  readonly app_name: string;
  readonly acquirer: string;
}

/** A terminal that was claimed, and then not used. */
const unnamed = { merchant_id: "", merchant_name: "", merchant_address: "", device_id: "", app_name: "" };

/** Registered terminals in PostgreSQL; their numbers are assigned with each command. */
export class PostgresTerminals implements TerminalStore, TerminalAcquirerStore {
  readonly #homes: Homes;

  constructor(homes: Homes) {
    this.#homes = homes;
  }

  async upsert(partnerId: PartnerId, terminal: Terminal, preAuthDays: number): Promise<UpsertedTerminal> {
    const put = () =>
      this.#inTransaction(
        partnerId,
        (client) => upsertUnderLock(client, partnerId, terminal, preAuthDays),
        ({ outcome }) => outcome === "put",
      );
    const first = await put();
    if (first.outcome !== "taken" || first.isRegistered) return first;
    return (await this.#takeOver(first.holder, partnerId, terminal, preAuthDays)) ? await put() : first;
  }

  async remove(partnerId: PartnerId, tid: string, preAuthDays: number): Promise<RemovedTerminal> {
    return await this.#inTransaction(
      partnerId,
      async (client) => {
        const known = await lockStanding(client, partnerId, tid, preAuthDays);
        if (known?.is_busy) return { outcome: "busy" };
        const [claim] = await releaseClaims(client, partnerId, tid);
        await client.query("DELETE FROM terminals WHERE partner_id = $1 AND tid = $2", [partnerId, tid]);
        const row = known ?? (claim && { ...unnamed, tid, ...claim });
        return row === undefined ? { outcome: "not_found" } : { outcome: "removed", terminal: readTerminal(row) };
      },
      ({ outcome }) => outcome === "removed",
    );
  }

  /** Gives a terminal that a command of the holder claimed to another partner, unless money is open on it. */
  async #takeOver(holder: PartnerId, to: PartnerId, terminal: Terminal, preAuthDays: number): Promise<boolean> {
    const { tid, mid, acquirer } = terminal;
    return await this.#inTransaction(
      holder,
      async (client) => {
        const known = await lockStanding(client, holder, tid, preAuthDays);
        if (known?.is_busy || !(await transferClaim(client, terminal, holder, to))) return false;
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
  async #inTransaction<Result>(
    partnerId: PartnerId,
    work: (client: PoolClient) => Promise<Result>,
    isToBeKept: (result: Result) => boolean,
  ): Promise<Result> {
    const { pool } = this.#homes.of(partnerId);
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

  async isRegisteredDevice(partnerId: PartnerId, deviceId: string): Promise<boolean> {
    const { rows } = await this.#homes.of(partnerId).engine.query(registeredDevice, [partnerId, deviceId]);
    return rows.length > 0;
  }

  async acquirerOf(partnerId: PartnerId, tid: string): Promise<string> {
    const { engine } = this.#homes.of(partnerId);
    const { rows } = await engine.query<{ acquirer: string }>({ ...findAcquirer, values: [partnerId, tid] });
    return rows[0]?.acquirer ?? "";
  }

  async find(partnerId: PartnerId, tid: string): Promise<Terminal | undefined> {
    const { rows } = await seen(this.#homes.of(partnerId).pool).query<TerminalRow>(
      `SELECT ${shown} FROM terminals WHERE partner_id = $1 AND tid = $2`,
      [partnerId, tid],
    );
    return rows[0] && readTerminal(rows[0]);
  }

  async list(partnerId: PartnerId, after: string | undefined, limit: number): Promise<readonly Terminal[]> {
    const { rows } = await this.#homes
      .of(partnerId)
      .pool.query<TerminalRow>(
        `SELECT ${shown} FROM terminals WHERE partner_id = $1 AND tid > $2 ORDER BY tid LIMIT $3`,
        [partnerId, after ?? "", limit],
      );
    return rows.map(readTerminal);
  }

  async search(text: string, limit: number): Promise<readonly FoundTerminal[]> {
    const answers = await Promise.all(
      this.#homes.all.map(({ pool }) =>
        pool.query<TerminalRow & { partner_id: PartnerId }>(
          `SELECT partner_id, ${shown} FROM terminals
           WHERE tid = $1 OR mid = $1 OR starts_with(lower(merchant_name), lower($1))
           ORDER BY tid, partner_id LIMIT $2`,
          [text, limit],
        ),
      ),
    );
    const rows = answers.flatMap((answer) => answer.rows).sort((a, z) => (a.tid < z.tid ? -1 : 1));
    return rows.slice(0, limit).map((row) => ({ ...readTerminal(row), partnerId: row.partner_id }));
  }
}

function readTerminal(row: TerminalRow): Terminal {
  return {
    tid: row.tid,
    mid: row.mid,
    merchantId: row.merchant_id,
    merchantName: row.merchant_name,
    merchantAddress: row.merchant_address,
    deviceId: row.device_id,
    appName: row.app_name,
    acquirer: row.acquirer,
  };
}

/** Nothing begins on the terminal until the transaction ends. */
async function lockStanding(
  client: PoolClient,
  partnerId: PartnerId,
  tid: string,
  preAuthDays: number,
): Promise<(TerminalRow & { readonly is_busy: boolean }) | undefined> {
  await client.query(lockTerminal, [partnerId, tid]);
  const { rows } = await client.query<TerminalRow & { readonly is_busy: boolean }>(standingTerminal, [
    partnerId,
    tid,
    preAuthDays,
  ]);
  return rows[0];
}

async function upsertUnderLock(
  client: PoolClient,
  partnerId: PartnerId,
  terminal: Terminal,
  preAuthDays: number,
): Promise<UpsertedTerminal> {
  const { tid, mid, merchantId, merchantName, merchantAddress, deviceId, appName, acquirer } = terminal;
  const known = await lockStanding(client, partnerId, tid, preAuthDays);
  const moves = known !== undefined && (known.mid !== mid || known.acquirer !== acquirer);
  if (moves && known.is_busy) return { outcome: "busy" };
  // Held until the terminal's row is written: a removal of the acquirer waits, and then finds it in use.
  const named = acquirer === "" ? 1 : (await client.query(acquirerByName, [acquirer])).rowCount;
  if (named !== 1) return { outcome: "no_such_acquirer" };
  if (!(await registerTerminalClaim(client, { partnerId, acquirer, mid, tid }))) {
    const holder = await holderOf(client, terminal);
    // Released meanwhile.
    if (holder === undefined) return await upsertUnderLock(client, partnerId, terminal, preAuthDays);
    return { outcome: "taken", holder: holder.partnerId, isRegistered: holder.isRegistered };
  }
  const values = [partnerId, tid, mid, merchantId, merchantName, merchantAddress, deviceId, appName, acquirer];
  const { rows } = await client.query<TerminalRow>(known === undefined ? insertNew : upsert, values);
  // Its first command has inserted it meanwhile.
  if (rows.length === 0) return await upsertUnderLock(client, partnerId, terminal, preAuthDays);
  return { outcome: "put", terminal: rows.map(readTerminal)[0] ?? terminal };
}

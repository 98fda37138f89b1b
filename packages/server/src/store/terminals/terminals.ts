import type { PoolClient } from "pg";
import type { PartnerId } from "../../ids.ts";
import type { TerminalAcquirerStore } from "../../ledger/terminal-acquirers.ts";
import type { TerminalStore, UpsertedTerminal } from "../../partners/store.ts";
import type { Terminal } from "../../partners/terminal.ts";
import type { Homes } from "../database/homes.ts";
import { registerTerminalClaim } from "./claims.ts";

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

// A terminal is busy if a transaction of its batch counts or is in flight, or a PreAuth can still be completed. Nothing
// begins on it while its row is locked.
const standingTerminal = `
  SELECT r.mid, r.acquirer, r.batch_closing
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
  FROM terminals r WHERE r.partner_id = $1 AND r.tid = $2
  FOR UPDATE OF r`;

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

/** Registered terminals in PostgreSQL; their numbers are assigned with each command. */
export class PostgresTerminals implements TerminalStore, TerminalAcquirerStore {
  readonly #homes: Homes;

  constructor(homes: Homes) {
    this.#homes = homes;
  }

  async upsert(partnerId: PartnerId, terminal: Terminal, preAuthDays: number): Promise<UpsertedTerminal> {
    const client = await this.#homes.of(partnerId).pool.connect();
    try {
      await client.query("BEGIN");
      const put = await upsertUnderLock(client, partnerId, terminal, preAuthDays);
      await client.query(put.outcome === "put" ? "COMMIT" : "ROLLBACK");
      client.release();
      return put;
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
    const { rows } = await this.#homes
      .of(partnerId)
      .pool.query<TerminalRow>(`SELECT ${shown} FROM terminals WHERE partner_id = $1 AND tid = $2`, [partnerId, tid]);
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

async function upsertUnderLock(
  client: PoolClient,
  partnerId: PartnerId,
  terminal: Terminal,
  preAuthDays: number,
): Promise<UpsertedTerminal> {
  const { tid, mid, merchantId, merchantName, merchantAddress, deviceId, appName, acquirer } = terminal;
  const { rows: standing } = await client.query<{ mid: string; acquirer: string; is_busy: boolean }>(standingTerminal, [
    partnerId,
    tid,
    preAuthDays,
  ]);
  const [known] = standing;
  const moves = known !== undefined && (known.mid !== mid || known.acquirer !== acquirer);
  if (moves && known.is_busy) return { outcome: "busy" };
  // Held until the terminal's row is written: a removal of the acquirer waits, and then finds it in use.
  const named = acquirer === "" ? 1 : (await client.query(acquirerByName, [acquirer])).rowCount;
  if (named !== 1) return { outcome: "no_such_acquirer" };
  if (!(await registerTerminalClaim(client, { partnerId, acquirer, mid, tid }))) return { outcome: "taken" };
  const values = [partnerId, tid, mid, merchantId, merchantName, merchantAddress, deviceId, appName, acquirer];
  const { rows } = await client.query<TerminalRow>(known === undefined ? insertNew : upsert, values);
  // Its first command has inserted it meanwhile.
  if (rows.length === 0) return await upsertUnderLock(client, partnerId, terminal, preAuthDays);
  return { outcome: "put", terminal: rows.map(readTerminal)[0] ?? terminal };
}

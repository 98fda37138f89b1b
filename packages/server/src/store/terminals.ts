import type { Pool } from "pg";
import type { PartnerId } from "../ids.ts";
import type { TerminalStore } from "../partners/store.ts";
import type { Terminal } from "../partners/terminal.ts";

const shown = "tid, mid, merchant_id, merchant_name, merchant_address, device_id, app_name";

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
}

/** Terminals in PostgreSQL, as far as they are registered; their numbers are given with each command. */
export class PostgresTerminals implements TerminalStore {
  readonly #engine: Pool;
  readonly #pool: Pool;

  constructor(pools: { readonly engine: Pool; readonly pool: Pool }) {
    this.#engine = pools.engine;
    this.#pool = pools.pool;
  }

  async put(partnerId: PartnerId, terminal: Terminal): Promise<Terminal> {
    const { rows } = await this.#pool.query<TerminalRow>(
      `INSERT INTO terminals (partner_id, ${shown}) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
       ON CONFLICT (partner_id, tid) DO UPDATE SET mid = excluded.mid, merchant_id = excluded.merchant_id,
         merchant_name = excluded.merchant_name, merchant_address = excluded.merchant_address,
         device_id = excluded.device_id, app_name = excluded.app_name
       RETURNING ${shown}`,
      [
        partnerId,
        terminal.tid,
        terminal.mid,
        terminal.merchantId,
        terminal.merchantName,
        terminal.merchantAddress,
        terminal.deviceId,
        terminal.appName,
      ],
    );
    return rows.map(readTerminal)[0] ?? terminal;
  }

  async isRegisteredDevice(partnerId: PartnerId, deviceId: string): Promise<boolean> {
    const { rows } = await this.#engine.query(registeredDevice, [partnerId, deviceId]);
    return rows.length > 0;
  }

  async list(partnerId: PartnerId, after: string | undefined, limit: number): Promise<readonly Terminal[]> {
    const { rows } = await this.#pool.query<TerminalRow>(
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
  };
}

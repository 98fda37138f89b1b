import type { Pool, PoolClient } from "pg";
import {
  type HeldCommand,
  type HeldShare,
  type Restore,
  type RestoreStore,
  restoredReason,
} from "../backups/restores.ts";
import { idTimeMs, lowestId, type NotificationId } from "../ids.ts";
import { epochMs } from "./database/along-indexes.ts";
import type { Database } from "./database/database.ts";
import { planned } from "./database/statement.ts";
import { inTransaction } from "./database/transaction.ts";
import { settlementCommands } from "./transactions/conditions.ts";

/** An instance runs on the database whose deliveries are to be held. */
class InstancesRunning extends Error {
  override readonly name = "InstancesRunning";
  readonly code = "instances_running";
  readonly remedy = "Stop every instance, then try again: within 8 s their leases are over.";

  constructor(hosts: readonly string[]) {
    super(`Instances run on this database, on ${hosts.join(", ")}.`);
  }
}

// An arbitrary number, the same in every version of the service.
const restoreLock = 7_420_004;

/**
 * More commands than a terminal ran between the end of a backup's log and the loss of the database. Their numbers are
 * not used again: a host treats a number that it has seen as a repeat, and answers as it did then.
 */
const numbersSkipped = 1_000;

const markedName = planned<{ name: string }>("SELECT coalesce(current_setting('paybell.restored', true), '') AS name");

const livingHosts = planned<{ host: string }>(`
  SELECT DISTINCT host FROM leases WHERE beaten_at > now() - interval '8 seconds' ORDER BY host`);

/** A share of a backlog: all of a large one would exceed the timeout of a statement. */
const parkedRowsMax = 5_000;

const parkPending = planned<{ gone: number; made: number }>(`
  WITH gone AS (
    DELETE FROM pending WHERE (partner_id, id) IN (SELECT partner_id, id FROM pending LIMIT ${parkedRowsMax})
    RETURNING partner_id, id, chain_id, round, attempts_made, bytes),
  made AS (
    INSERT INTO parked (partner_id, id, chain_id, round, attempts_made, bytes, reason)
    SELECT partner_id, id, chain_id, round, attempts_made, bytes, $1 FROM gone
    ON CONFLICT (partner_id, id) DO NOTHING RETURNING 1)
  SELECT (SELECT count(*) FROM gone)::integer AS gone, (SELECT count(*) FROM made)::integer AS made`);

const skipNumbers = planned(`
  UPDATE terminals SET trace_no = (trace_no + $1 - 1) % 999999 + 1,
    invoice_no = CASE WHEN invoice_no = 0 THEN 0 ELSE (invoice_no + $1 - 1) % 999999 + 1 END
  WHERE trace_no > 0`);

const addRestore = planned(`
  INSERT INTO restores (name, ends_at, held, leases_below)
  VALUES ($1, (SELECT max(beaten_at) FROM leases), $2, $3)`);

const lastRestore = planned<Restore>(`
  SELECT name, ${epochMs("ends_at")} AS "endsAtMs", ${epochMs("held_at")} AS "heldAtMs", held::integer,
    ${epochMs("released_at")} AS "releasedAtMs" FROM restores ORDER BY held_at DESC LIMIT 1`);

const heldShares = planned<ShareRow>(`
  SELECT partner_id AS "partnerId", count(*) AS count, count(*) FILTER (WHERE attempts_made > 0 OR round > 0) AS attempted,
    min(id::text) AS oldest, max(id::text) AS newest
  FROM parked WHERE reason = $1 GROUP BY partner_id ORDER BY partner_id`);

const heldCommands = planned<HeldCommand>(`
  SELECT partner_id AS "partnerId", id, command, req_id AS "reqId", ${epochMs("created_at")} AS "createdAtMs"
  FROM transactions
  WHERE state = 'INIT' AND command NOT IN ${settlementCommands} AND lease_id < $1
  ORDER BY created_at LIMIT $2`);

interface ShareRow extends Pick<HeldShare, "partnerId" | "count" | "attempted"> {
  readonly oldest: NotificationId;
  readonly newest: NotificationId;
}

/** Restores of the database from a backup, and what they hold. */
export class PostgresRestores implements RestoreStore {
  readonly #database: Pick<Database, "pool" | "homes">;

  constructor(database: Pick<Database, "pool" | "homes">) {
    this.#database = database;
  }

  /**
   * If the server says that its data come from a backup, and no start has noticed it: parks what was pending.
   *
   * @param nowMs by this machine's clock, as the ids of leases are made
   * @returns the restore that was noticed now
   */
  async holdMarked(nowMs: number): Promise<Restore | undefined> {
    const name = (await markedName.first(this.#database.pool))?.name ?? "";
    if (name === "") return undefined;
    return this.#locked(async (client) => {
      const known = await client.query("SELECT FROM restores WHERE name = $1", [name]);
      return known.rowCount === 0 ? this.#hold(client, name, nowMs) : undefined;
    });
  }

  /**
   * The same for a database that another program restored.
   *
   * @throws InstancesRunning if an instance holds a lease, or did until a moment ago
   */
  async hold(name: string, nowMs: number): Promise<Restore> {
    return this.#locked(async (client) => {
      const rows = await livingHosts.rows(client);
      if (rows.length > 0) throw new InstancesRunning(rows.map(({ host }) => host));
      return this.#hold(client, name, nowMs);
    });
  }

  async last(): Promise<Restore | undefined> {
    return lastRestore.first(this.#database.pool);
  }

  async shares(): Promise<readonly HeldShare[]> {
    const rows = await this.#database.homes.gather(({ pool }) => heldShares.rows(pool, [restoredReason]));
    return rows.map(({ oldest, newest, ...share }) => ({
      ...share,
      oldestAtMs: idTimeMs(oldest),
      newestAtMs: idTimeMs(newest),
    }));
  }

  async commands(name: string, rowsMax: number): Promise<readonly HeldCommand[]> {
    const { pool, homes } = this.#database;
    const { rows } = await pool.query<{ below: string }>("SELECT leases_below AS below FROM restores WHERE name = $1", [
      name,
    ]);
    const found = await homes.gather((home) => heldCommands.rows(home.pool, [rows[0]?.below ?? null, rowsMax]));
    return found.slice(0, rowsMax);
  }

  /** With those before it, whose data were restored again: what they hold, this one holds too. */
  async release(name: string): Promise<void> {
    await this.#database.pool.query(
      `UPDATE restores SET released_at = now()
       WHERE released_at IS NULL AND held_at <= (SELECT held_at FROM restores WHERE name = $1)`,
      [name],
    );
  }

  /** Adds the restore last: until then no instance gets a lease, and a start that was cut off is repeated. */
  async #hold(client: PoolClient, name: string, nowMs: number): Promise<Restore> {
    const parked = await this.#database.homes.gather(({ pool }) => parkIn(pool));
    const held = parked.reduce((sum, count) => sum + count, 0);
    await addRestore.run(client, [name, held, lowestId(nowMs)]);
    return (await lastRestore.first(client)) as Restore;
  }

  /** One instance at a time: another would park what this one accepts meanwhile. */
  async #locked<Result>(work: (client: PoolClient) => Promise<Result>): Promise<Result> {
    const client = await this.#database.pool.connect();
    try {
      await client.query("SELECT pg_advisory_lock($1)", [restoreLock]);
      return await work(client);
    } finally {
      // With the connection its lock ends.
      client.release(true);
    }
  }
}

function parkIn(pool: Pool): Promise<readonly number[]> {
  return inTransaction(pool, async (client) => {
    let held = 0;
    for (let last = parkedRowsMax; last === parkedRowsMax; ) {
      const row = await parkPending.first(client, [restoredReason]);
      const { gone, made } = row ?? { gone: 0, made: 0 };
      held += made;
      last = gone;
    }
    await skipNumbers.run(client, [numbersSkipped]);
    return [held];
  });
}

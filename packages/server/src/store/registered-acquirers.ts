import { randomUUID } from "node:crypto";
import type { Pool, PoolClient } from "pg";
import type {
  AcquirerStore,
  AcquirerTerminal,
  AcquirerToStore,
  StoredAcquirer,
} from "../acquirer/registered/registry.ts";
import type { Database } from "./database/database.ts";
import type { Homes } from "./database/homes.ts";
import { planned } from "./database/statement.ts";
import { inTransaction } from "./database/transaction.ts";
import { appendEntry, seen } from "./operators/audit.ts";
import { openReversal } from "./transactions/conditions.ts";

const selectAcquirers = `
  SELECT a.name, a.profile, a.hosts, a.tls, a.ca, a.certificate, a.version,
    a.created_at AS "createdAt", a.updated_at AS "updatedAt", s.sealed
  FROM acquirers a JOIN sealed_values s ON s.name = 'acquirer ' || a.name`;

// A rotation of the master key seals it again meanwhile, or waits: in either case the newer secrets remain.
const keepSecrets = planned(`
  INSERT INTO sealed_values (name, sealed) VALUES ('acquirer ' || $1::text, $2)
  ON CONFLICT (name) DO UPDATE SET sealed = excluded.sealed`);

const dropMacKeysBut = planned(
  "DELETE FROM sealed_values WHERE starts_with(name, 'acquirer-key ' || $1::text || ' ') AND name <> $2",
);

const addMacKey = planned("INSERT INTO sealed_values (name, sealed) VALUES ($1, $2) ON CONFLICT DO NOTHING");

const replaceMacKey = planned("UPDATE sealed_values SET sealed = $2 WHERE name = $1 AND sealed = $3");

// `excluded.updated_at` is the column's default, now(): Citus allows no now() in DO UPDATE.
const upsert = planned(`
  INSERT INTO acquirers AS a (name, profile, hosts, tls, ca, certificate, version) VALUES ($1, $2, $3, $4, $5, $6, $7)
  ON CONFLICT (name) DO UPDATE SET profile = excluded.profile, hosts = excluded.hosts, tls = excluded.tls,
    ca = excluded.ca, certificate = excluded.certificate, version = excluded.version, updated_at = excluded.updated_at`);

// Terminals with open batches refer to it: a terminal changes its acquirer only without them. A Reversal may run
// longer, because a late approval repeats it, or an operator one that is parked: without its acquirer it would never end, and
// the terminal's settlements wait for it. The Void of a PreAuth that expired may be in flight after its terminal has moved.
const usedIn = planned(`
  SELECT FROM (SELECT) AS one
  WHERE EXISTS (SELECT FROM terminals t WHERE t.acquirer = $1 AND t.acquirer <> '')
    OR EXISTS (SELECT FROM transactions t WHERE t.state = 'INIT' AND t.acquirer = $1)
    OR EXISTS (
      SELECT FROM reversals r JOIN transactions t ON t.partner_id = r.partner_id AND t.id = r.transaction_id
      WHERE r.state ${openReversal} AND t.acquirer = $1)`);

const terminalsOf = planned<AcquirerTerminal>(`
  SELECT t.partner_id AS "partnerId", t.tid, t.mid, t.merchant_name AS "merchantName"
  FROM terminals t WHERE t.acquirer = $1 AND t.acquirer <> '' ORDER BY t.partner_id, t.tid LIMIT $2`);

/** Registered acquirers in PostgreSQL. Each change is notified on `paybell_acquirers`. */
export class PostgresAcquirers implements AcquirerStore {
  readonly #pool: Pool;
  readonly #homes: Homes;

  constructor({ pool, homes }: Pick<Database, "pool" | "homes">) {
    this.#pool = pool;
    this.#homes = homes;
  }

  async versions(): Promise<ReadonlyMap<string, string>> {
    const { rows } = await this.#pool.query<Pick<StoredAcquirer, "name" | "version">>(
      "SELECT name, version FROM acquirers",
    );
    return new Map(rows.map(({ name, version }) => [name, version]));
  }

  find(name: string): Promise<StoredAcquirer | undefined> {
    return findWith(seen(this.#pool), name);
  }

  async list(): Promise<readonly StoredAcquirer[]> {
    return (await this.#pool.query<StoredAcquirer>(`${selectAcquirers} ORDER BY a.name`)).rows;
  }

  async terminals(name: string, rowsMax: number): Promise<readonly AcquirerTerminal[]> {
    const rows = await this.#homes.gather(({ pool }) => terminalsOf.rows(pool, [name, rowsMax]));
    const keyOf = ({ partnerId, tid }: AcquirerTerminal) => `${partnerId} ${tid}`;
    return [...rows].sort((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1)).slice(0, rowsMax);
  }

  put(
    name: string,
    next: (standing: StoredAcquirer | undefined, registered: number) => AcquirerToStore,
  ): Promise<StoredAcquirer> {
    return this.#locked(name, async (client) => {
      const { rows } = await client.query<{ count: number }>("SELECT count(*)::integer AS count FROM acquirers");
      const toStore = next(await findWith(client, name), rows[0]?.count ?? 0);
      const { sealed, profile, hosts, tls, ca, certificate, isOtherMacKey } = toStore;
      await keepSecrets.run(client, [name, sealed]);
      if (isOtherMacKey) await dropMacKeysBut.run(client, [name, ""]);
      await upsert.run(client, [name, profile, hosts, tls, ca, certificate, randomUUID()]);
      await appendEntry(client, this.#pool);
      return (await findWith(client, name)) as StoredAcquirer;
    });
  }

  /** The key of the MACs that came over the link last; `sealedAs` begins with `acquirer-key` and the name. */
  async readMacKey(sealedAs: string): Promise<Buffer | undefined> {
    const { rows } = await this.#pool.query<{ sealed: Buffer }>("SELECT sealed FROM sealed_values WHERE name = $1", [
      sealedAs,
    ]);
    return rows[0]?.sealed;
  }

  /**
   * Replaces the one that was read, and all instances are notified.
   *
   * @returns false if another was stored since
   */
  async replaceMacKey(name: string, sealedAs: string, read: Buffer | undefined, sealed: Buffer): Promise<boolean> {
    return this.#locked(name, async (client) => {
      const change =
        read === undefined
          ? addMacKey.run(client, [sealedAs, sealed])
          : replaceMacKey.run(client, [sealedAs, sealed, read]);
      return (await change) === 1;
    });
  }

  /** Those of the acquirer that came under another registered key than this one. */
  async dropMacKeysBut(name: string, sealedAs: string): Promise<void> {
    await dropMacKeysBut.run(this.#pool, [name, sealedAs]);
  }

  /** The hosts of an acquirer that signed off, and have not signed on since. */
  async signedOff(name: string): Promise<ReadonlySet<string>> {
    const select = "SELECT host FROM acquirer_sign_offs WHERE acquirer = $1";
    const { rows } = await this.#pool.query<{ host: string }>(select, [name]);
    return new Set(rows.map(({ host }) => host));
  }

  /** All instances are notified. */
  async noteSignOff(name: string, host: string, isSignedOff: boolean): Promise<void> {
    const insert = "INSERT INTO acquirer_sign_offs (acquirer, host) VALUES ($1, $2) ON CONFLICT DO NOTHING";
    const remove = "DELETE FROM acquirer_sign_offs WHERE acquirer = $1 AND host = $2";
    await this.#locked(name, (client) => client.query(isSignedOff ? insert : remove, [name, host]));
  }

  /** Whether another process runs commands, and so is connected to every acquirer. */
  async isUsedByOthers(leaseId: string | undefined): Promise<boolean> {
    const select = "SELECT FROM leases WHERE id IS DISTINCT FROM $1::uuid LIMIT 1";
    return (await this.#pool.query(select, [leaseId ?? null])).rowCount === 1;
  }

  remove(name: string): Promise<"removed" | "unknown" | "in_use"> {
    return this.#locked(name, async (client) => {
      const { rowCount } = await client.query("SELECT FROM acquirers WHERE name = $1 FOR UPDATE", [name]);
      if (rowCount === 0) return "unknown";
      const uses = await this.#homes.gather(({ pool }) => usedIn.rows(pool, [name]));
      if (uses.length > 0) return "in_use";
      await client.query("DELETE FROM acquirers WHERE name = $1", [name]);
      await client.query("DELETE FROM sealed_values WHERE name = 'acquirer ' || $1::text", [name]);
      await dropMacKeysBut.run(client, [name, ""]);
      await client.query("DELETE FROM acquirer_sign_offs WHERE acquirer = $1", [name]);
      await appendEntry(client, this.#pool);
      return "removed";
    });
  }

  /** One change of an acquirer after the other, also of one that is not there yet. */
  #locked<Result>(name: string, change: (client: PoolClient) => Promise<Result>): Promise<Result> {
    return inTransaction(this.#pool, async (client) => {
      await client.query("SELECT pg_advisory_xact_lock(hashtext('paybell acquirer'), hashtext($1))", [name]);
      const result = await change(client);
      await client.query("SELECT pg_notify('paybell_acquirers', '')");
      return result;
    });
  }
}

async function findWith(client: Pool | PoolClient, name: string): Promise<StoredAcquirer | undefined> {
  return (await client.query<StoredAcquirer>(`${selectAcquirers} WHERE a.name = $1`, [name])).rows[0];
}

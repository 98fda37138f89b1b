import { readFileSync } from "node:fs";
import { hostname } from "node:os";
import type { Client, QueryConfig, QueryResult } from "pg";
import type { LeaseId } from "../ids.ts";
import type { LeaseBeat, LeaseKind, LeaseStore } from "../leases/lease.ts";

const insert = {
  name: "insert_lease",
  text: "INSERT INTO leases (id, kind, host, version) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING",
};

// One round trip for both: an idle instance would spend as much on the second as on the first.
const raise = {
  name: "raise_beat",
  text: `
    WITH raised AS (UPDATE leases SET beat = beat + 1, beaten_at = now(), kind = $2 WHERE id = $1 RETURNING id)
    SELECT l.id, l.beat FROM leases l WHERE EXISTS (SELECT FROM raised) ORDER BY l.id`,
};

// Its shards are free: the same commit notifies the others.
const remove = {
  name: "remove_lease",
  text: "WITH gone AS (DELETE FROM leases WHERE id = $1 RETURNING id) SELECT pg_notify('paybell_shards', '') FROM gone",
};

const removeDead = {
  name: "remove_dead_leases",
  text: `
    WITH gone AS (
      DELETE FROM leases l USING unnest($1::uuid[], $2::bigint[]) AS d (id, beat)
      WHERE l.id = d.id AND l.beat = d.beat
      RETURNING l.id)
    SELECT id, pg_notify('paybell_shards', '') FROM gone`,
};

const { version } = JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8")) as {
  readonly version: string;
};

/** Leases in PostgreSQL, over a dedicated connection: a beat never queues behind other work. */
export class PostgresLeases implements LeaseStore {
  readonly #connection: () => Promise<Client>;

  constructor(connection: () => Promise<Client>) {
    this.#connection = connection;
  }

  async insert(id: LeaseId, kind: LeaseKind): Promise<void> {
    await this.#ask({ ...insert, values: [id, kind, hostname(), version] });
  }

  async beat(id: LeaseId, kind: LeaseKind): Promise<readonly LeaseBeat[] | undefined> {
    const { rows } = await this.#ask<LeaseBeat>({ ...raise, values: [id, kind] });
    return rows.length === 0 ? undefined : rows;
  }

  async remove(id: LeaseId): Promise<void> {
    await this.#ask({ ...remove, values: [id] });
  }

  async removeDead(dead: readonly LeaseBeat[]): Promise<readonly LeaseId[]> {
    const values = [dead.map(({ id }) => id), dead.map(({ beat }) => beat)];
    const { rows } = await this.#ask<{ id: LeaseId }>({ ...removeDead, values });
    return rows.map(({ id }) => id);
  }

  async #ask<Row extends object>(query: QueryConfig): Promise<QueryResult<Row>> {
    const client = await this.#connection();
    try {
      return await client.query<Row>(query);
    } catch (error) {
      // A connection without an answer may never answer, and would delay everything after it: the next beat uses
      // another one.
      client.end().catch(() => undefined);
      throw error;
    }
  }
}

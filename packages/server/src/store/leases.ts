import { readFileSync } from "node:fs";
import { hostname } from "node:os";
import type { Client } from "pg";
import type { LeaseId } from "../ids.ts";
import type { LeaseBeat, LeaseStore } from "../leases/lease.ts";
import { prepared } from "./database/statement.ts";

const insert = prepared("INSERT INTO leases (id, kind, host, version) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING");

// One round trip for both: an idle instance would spend as much on the second as on the first.
const raise = prepared<LeaseBeat>(`
  WITH raised AS (UPDATE leases SET beat = beat + 1, beaten_at = now(), kind = $2 WHERE id = $1 RETURNING id)
  SELECT l.id, l.beat FROM leases l WHERE EXISTS (SELECT FROM raised) ORDER BY l.id`);

// Its shards are free: the same commit notifies the others.
const remove = prepared(
  "WITH gone AS (DELETE FROM leases WHERE id = $1 RETURNING id) SELECT pg_notify('paybell_shards', '') FROM gone",
);

const removeDead = prepared<{ id: LeaseId }>(`
  WITH gone AS (
    DELETE FROM leases l USING unnest($1::uuid[], $2::bigint[]) AS d (id, beat)
    WHERE l.id = d.id AND l.beat = d.beat
    RETURNING l.id)
  SELECT id, pg_notify('paybell_shards', '') FROM gone`);

const { version } = JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8")) as {
  readonly version: string;
};

/** Leases in PostgreSQL, over a dedicated connection: a beat never queues behind other work. */
export function postgresLeases(connection: () => Promise<Client>): LeaseStore {
  async function on<Result>(ask: (client: Client) => Promise<Result>): Promise<Result> {
    const client = await connection();
    try {
      return await ask(client);
    } catch (error) {
      // A connection without an answer may never answer, and would delay everything after it: the next beat uses
      // another one.
      client.end().catch(() => undefined);
      throw error;
    }
  }

  return {
    async insert(id, kind) {
      await on((client) => insert.run(client, [id, kind, hostname(), version]));
    },

    async beat(id, kind) {
      const rows = await on((client) => raise.rows(client, [id, kind]));
      return rows.length === 0 ? undefined : rows;
    },

    async remove(id) {
      await on((client) => remove.run(client, [id]));
    },

    async removeDead(dead) {
      const values = [dead.map(({ id }) => id), dead.map(({ beat }) => beat)];
      const rows = await on((client) => removeDead.rows(client, values));
      return rows.map(({ id }) => id);
    },
  };
}

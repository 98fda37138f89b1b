import type { Pool } from "pg";
import type { EndedSessionStore, OperatorRecord, OperatorStore } from "../../operators/operators.ts";
import { inTransaction } from "../database/transaction.ts";
import { appendEntry, seen } from "./audit.ts";
import { type RowSeal, type RowSeals, sealOf } from "./row-seals.ts";

const shown = `id, name, role, created_at AS "createdAt", expires_at AS "expiresAt", last_used_at AS "lastUsedAt",
  revoked_at AS "revokedAt", subject`;

/** @param seals absent: rows are stored without a MAC */
export function postgresOperators(pool: Pool, seals?: RowSeals): OperatorStore {
  function change(action: string, text: string, values: readonly unknown[]): Promise<OperatorRecord | undefined> {
    return inTransaction(pool, async (client) => {
      const [changed] = (await client.query<OperatorRecord>(text, [...values])).rows;
      if (changed === undefined) return undefined;
      const { id } = changed;
      if (seals === undefined) await appendEntry(client, pool, id);
      else await seals.seal(client, { table: "operators", ids: [id], action, subject: id });
      return changed;
    });
  }

  return {
    add: ({ id, name, role, expiresAt, subject }, tokenHash) =>
      change(
        "addOperator",
        `INSERT INTO operators (id, name, role, token_hash, expires_at, subject) VALUES ($1, $2, $3, $4, $5, $6)
         RETURNING ${shown}`,
        [id, name, role, seals?.toStore(tokenHash) ?? tokenHash, expiresAt, subject],
      ) as Promise<OperatorRecord>,

    async list() {
      const { rows } = await seen(pool).query<OperatorRecord>(`SELECT ${shown} FROM operators ORDER BY id LIMIT 10000`);
      return rows;
    },

    async findByToken(tokenHash) {
      const { rows } = await pool.query<OperatorRecord & { seal: RowSeal }>(
        `SELECT ${shown}, ${sealOf("operators")} AS seal FROM operators t WHERE token_hash = ANY ($1::bytea[])`,
        [seals?.storedAs(tokenHash) ?? [tokenHash]],
      );
      const intact = rows.filter(({ id, seal }) => seals?.isIntact("operators", id, seal) ?? true);
      return intact.map(({ seal: _, ...operator }) => operator)[0];
    },

    revoke: (id) =>
      change(
        "revokeOperator",
        `UPDATE operators SET revoked_at = coalesce(revoked_at, now()) WHERE id = $1 RETURNING ${shown}`,
        [id],
      ),

    async used(id) {
      await pool.query("UPDATE operators SET last_used_at = now() WHERE id = $1", [id]);
    },

    async dropOverSignIns() {
      // Where there are two admins, the token of the settings may add no first ones: after days without a sign-in too.
      await pool.query(
        `DELETE FROM operators WHERE subject IS NOT NULL AND least(expires_at, revoked_at) < now() - interval '1 day'
           AND id NOT IN (SELECT id FROM operators WHERE role = 'admin' ORDER BY id DESC LIMIT 2)`,
      );
    },
  };
}

/** Ended sessions in PostgreSQL. Each that is added deletes those that are over. */
export function postgresEndedSessions(pool: Pool): EndedSessionStore {
  return {
    async add(id, endsAtMs) {
      // An instance whose clock is behind takes a cookie a little longer.
      await pool.query("DELETE FROM ended_sessions WHERE ends_at < now() - interval '1 hour'");
      await pool.query("INSERT INTO ended_sessions (id, ends_at) VALUES ($1, $2) ON CONFLICT DO NOTHING", [
        id,
        new Date(endsAtMs),
      ]);
    },

    async has(id) {
      const { rowCount } = await pool.query("SELECT FROM ended_sessions WHERE id = $1", [id]);
      return rowCount === 1;
    },
  };
}

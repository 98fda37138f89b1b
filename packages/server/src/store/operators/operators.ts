import type { Pool } from "pg";
import type { OperatorId, OperatorRecord, OperatorStore, Role } from "../../operators/operator.ts";
import { inTransaction } from "../database/transaction.ts";
import { appendEntry, seen } from "./acting.ts";

const shown = "id, name, role, created_at, expires_at, last_used_at, revoked_at, subject";

interface Row {
  readonly id: OperatorId;
  readonly name: string;
  readonly role: Role;
  readonly created_at: Date;
  readonly expires_at: Date;
  readonly last_used_at: Date | null;
  readonly revoked_at: Date | null;
  readonly subject: string | null;
}

/** Operators in PostgreSQL. */
export class PostgresOperators implements OperatorStore {
  readonly #pool: Pool;

  constructor(pool: Pool) {
    this.#pool = pool;
  }

  add({ id, name, role, expiresAt, subject }: Parameters<OperatorStore["add"]>[0], tokenHash: Buffer) {
    return this.#change(
      `INSERT INTO operators (id, name, role, token_hash, expires_at, subject) VALUES ($1, $2, $3, $4, $5, $6)
       RETURNING ${shown}`,
      [id, name, role, tokenHash, expiresAt, subject],
    ) as Promise<OperatorRecord>;
  }

  async list(): Promise<readonly OperatorRecord[]> {
    const { rows } = await seen(this.#pool).query<Row>(`SELECT ${shown} FROM operators ORDER BY id LIMIT 10000`);
    return rows.map(recordOf);
  }

  async findByToken(tokenHash: Buffer): Promise<OperatorRecord | undefined> {
    const { rows } = await this.#pool.query<Row>(`SELECT ${shown} FROM operators WHERE token_hash = $1`, [tokenHash]);
    return rows.map(recordOf)[0];
  }

  revoke(id: OperatorId): Promise<OperatorRecord | undefined> {
    return this.#change(
      `UPDATE operators SET revoked_at = coalesce(revoked_at, now()) WHERE id = $1 RETURNING ${shown}`,
      [id],
    );
  }

  async used(id: OperatorId): Promise<void> {
    await this.#pool.query("UPDATE operators SET last_used_at = now() WHERE id = $1", [id]);
  }

  async dropOverSignIns(): Promise<void> {
    await this.#pool.query(
      "DELETE FROM operators WHERE subject IS NOT NULL AND least(expires_at, revoked_at) < now() - interval '1 day'",
    );
  }

  #change(text: string, values: readonly unknown[]): Promise<OperatorRecord | undefined> {
    return inTransaction(this.#pool, async (client) => {
      const { rows } = await client.query<Row>(text, [...values]);
      const [changed] = rows.map(recordOf);
      if (changed !== undefined) await appendEntry(client, this.#pool, changed.id);
      return changed;
    });
  }
}

function recordOf(row: Row): OperatorRecord {
  return {
    id: row.id,
    name: row.name,
    role: row.role,
    createdAt: row.created_at,
    expiresAt: row.expires_at,
    lastUsedAt: row.last_used_at,
    revokedAt: row.revoked_at,
    subject: row.subject,
  };
}

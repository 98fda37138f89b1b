import type { Pool } from "pg";
import type { AuditEntry, AuditRecord, AuditSearch, AuditStore } from "../../operators/audit.ts";
import { inTransaction } from "../database/transaction.ts";

const shown = "seq, at_ms, actor, role, token_id, address, action, subject, before, after, hash";
/** The predecessor of the first entry. */
const start = "0".repeat(64);
/** Held by the instance that adds an entry, because each entry contains the hash of the previous one. */
const lockKey = 4_820_041;
const dropRows = 5_000;

interface Row {
  readonly seq: number;
  readonly at_ms: number;
  readonly actor: string;
  readonly role: string;
  readonly token_id: string;
  readonly address: string;
  readonly action: string;
  readonly subject: string;
  readonly before: string;
  readonly after: string;
  readonly hash: string;
}

/** The audit in PostgreSQL, where entries cannot be changed. */
export class PostgresAudit implements AuditStore {
  readonly #pool: Pool;

  constructor(pool: Pool) {
    this.#pool = pool;
  }

  append(entry: AuditEntry, hash: (previous: string, seq: number) => string): Promise<AuditRecord> {
    return inTransaction(this.#pool, async (client) => {
      await client.query("SELECT pg_advisory_xact_lock($1)", [lockKey]);
      const { rows } = await client.query<Pick<Row, "seq" | "hash">>(
        "SELECT seq, hash FROM audit ORDER BY seq DESC LIMIT 1",
      );
      const seq = (rows[0]?.seq ?? 0) + 1;
      const record = { ...entry, seq, hash: hash(rows[0]?.hash ?? start, seq) };
      await client.query(
        `INSERT INTO audit (${shown}) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)`,
        valuesOf(record),
      );
      return record;
    });
  }

  async search(search: AuditSearch): Promise<readonly AuditRecord[]> {
    const { actor, subject, action, tokenId, address, fromMs, toMs, before, limit } = search;
    const texts = [actor, subject, action, tokenId, address];
    const { rows } = await this.#pool.query<Row>(
      `SELECT ${shown} FROM audit
       WHERE ($1::text IS NULL OR actor = $1) AND ($2::text IS NULL OR subject = $2)
         AND ($3::text IS NULL OR action = $3) AND ($4::text IS NULL OR token_id = $4)
         AND ($5::text IS NULL OR address = $5)
         AND ($6::bigint IS NULL OR at_ms >= $6) AND ($7::bigint IS NULL OR at_ms < $7)
         AND ($8::bigint IS NULL OR seq < $8)
       ORDER BY seq DESC LIMIT $9`,
      [...texts, fromMs, toMs, before].map((value) => value ?? null).concat(limit),
    );
    return rows.map(recordOf);
  }

  async following(seq: number, limit: number): Promise<readonly AuditRecord[]> {
    const { rows } = await this.#pool.query<Row>(`SELECT ${shown} FROM audit WHERE seq > $1 ORDER BY seq LIMIT $2`, [
      seq,
      limit,
    ]);
    return rows.map(recordOf);
  }

  async start(): Promise<Pick<AuditRecord, "seq" | "hash">> {
    const { rows } = await this.#pool.query<Pick<Row, "seq" | "hash">>("SELECT seq, hash FROM audit_start");
    return rows[0] ?? { seq: 0, hash: start };
  }

  async dropBefore(beforeMs: number): Promise<number> {
    const { rows } = await this.#pool.query<{ dropped: number }>("SELECT drop_audit_before($1, $2) AS dropped", [
      beforeMs,
      dropRows,
    ]);
    return rows[0]?.dropped ?? 0;
  }
}

function valuesOf(record: AuditRecord): unknown[] {
  const { seq, atMs, actor, role, tokenId, address, action, subject, before, after, hash } = record;
  return [seq, atMs, actor, role, tokenId, address, action, subject, before, after, hash];
}

function recordOf(row: Row): AuditRecord {
  const { seq, actor, role, address, action, subject, before, after, hash } = row;
  return {
    seq,
    atMs: row.at_ms,
    actor,
    role,
    tokenId: row.token_id,
    address,
    action,
    subject,
    before,
    after,
    hash,
  };
}

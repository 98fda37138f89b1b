import { AsyncLocalStorage } from "node:async_hooks";
import { DatabaseError, type Pool, type PoolClient } from "pg";
import { ServiceError } from "../../errors.ts";
import type {
  AuditAction,
  AuditEntry,
  AuditHash,
  AuditHead,
  AuditRecord,
  AuditSearch,
  AuditStore,
} from "../../operators/audit.ts";
import { planned } from "../database/statement.ts";
import { inTransaction } from "../database/transaction.ts";

const columns = "seq, at_ms, actor, role, token_id, address, action, subject, before, after, hash";
const shown = columns.replace("at_ms", 'at_ms AS "atMs"').replace("token_id", 'token_id AS "tokenId"');
/** The predecessor of the first entry. */
const start = "0".repeat(64);
/** Held by the instance that adds an entry, because each entry contains the hash of the previous one. */
const lockKey = 4_820_041;
/** An action waits this long for the lock, and is refused then. */
const lockWaitMs = 2_000;
const lockNotAvailable = "55P03";
const dropRows = 5_000;
// As drop_audit_before counts: the oldest ones, up to the first that is not old enough.
const droppable = planned<{ entries: number }>(`
  SELECT count(*)::integer AS entries FROM (SELECT seq, at_ms FROM audit ORDER BY seq LIMIT $2) AS o
  WHERE NOT EXISTS (SELECT FROM audit y WHERE y.seq <= o.seq AND y.at_ms >= $1)`);

/** @param after the MAC of the entry before */
type MacOf = (seq: number, hash: string, after: Buffer | null) => Buffer | null;

/** The audit in PostgreSQL, where entries cannot be changed. */
export class PostgresAudit implements AuditStore {
  readonly #pool: Pool;
  readonly #macOf: MacOf;

  /** @param macOf absent: entries are stored without a MAC */
  constructor(pool: Pool, macOf: MacOf = () => null) {
    this.#pool = pool;
    this.#macOf = macOf;
  }

  append(entry: AuditEntry, hash: AuditHash): Promise<AuditRecord> {
    return inTransaction(this.#pool, (client) => appendIn(client, entry, hash, this.#macOf));
  }

  during<Result>(action: AuditAction, run: () => Result): Result {
    const append = async (client: PoolClient, pool: Pool, subject: string) => {
      const entry = await composeWithin(pool, client, () => action.compose(subject));
      try {
        // Another node of Citus does not have the audit: the entry is committed just before the change is.
        const isHere = pool === this.#pool;
        const record = await (isHere
          ? appendIn(client, entry, action.hashOf(entry), this.#macOf)
          : this.append(entry, action.hashOf(entry)));
        action.appended();
        return record;
      } catch (error) {
        action.failed(error, entry);
        throw error;
      }
    };
    return runActing({ append }, run);
  }

  async search(search: AuditSearch): Promise<readonly AuditRecord[]> {
    const { actor, subject, action, tokenId, address, fromMs, toMs, before, limit } = search;
    const texts = [actor, subject, action, tokenId, address];
    const { rows } = await this.#pool.query<AuditRecord>(
      `SELECT ${shown} FROM audit
       WHERE ($1::text IS NULL OR actor = $1) AND ($2::text IS NULL OR subject = $2)
         AND ($3::text IS NULL OR action = $3) AND ($4::text IS NULL OR token_id = $4)
         AND ($5::text IS NULL OR address = $5)
         AND ($6::bigint IS NULL OR at_ms >= $6) AND ($7::bigint IS NULL OR at_ms < $7)
         AND ($8::bigint IS NULL OR seq < $8)
       ORDER BY seq DESC LIMIT $9`,
      [...texts, fromMs, toMs, before].map((value) => value ?? null).concat(limit),
    );
    return rows;
  }

  async following(seq: number, limit: number): ReturnType<AuditStore["following"]> {
    const { rows } = await this.#pool.query<AuditRecord & { mac: Buffer | null }>(
      `SELECT ${shown}, mac FROM audit WHERE seq > $1 ORDER BY seq LIMIT $2`,
      [seq, limit],
    );
    return rows;
  }

  async sealedFrom(): Promise<number | undefined> {
    return (await this.#pool.query<{ seq: number }>("SELECT seq FROM sealing")).rows[0]?.seq;
  }

  async start(): Promise<Pick<AuditRecord, "seq" | "hash">> {
    const { rows } = await this.#pool.query<Pick<AuditRecord, "seq" | "hash">>("SELECT seq, hash FROM audit_start");
    return rows[0] ?? { seq: 0, hash: start };
  }

  dropBefore(beforeMs: number, made: Parameters<AuditStore["dropBefore"]>[1]): Promise<number> {
    return inTransaction(this.#pool, async (client) => {
      await lockAudit(client);
      const row = await droppable.first(client, [beforeMs, dropRows]);
      const entries = row?.entries ?? 0;
      if (entries === 0) return 0;
      await appendIn(client, ...made(entries), this.#macOf);
      await client.query("SELECT drop_audit_before($1, $2)", [beforeMs, dropRows]);
      return entries;
    });
  }

  async head(): Promise<AuditHead | undefined> {
    return (await this.#pool.query<AuditHead>("SELECT seq, hash FROM audit ORDER BY seq DESC LIMIT 1")).rows[0];
  }
}

function lockAudit(client: PoolClient): Promise<unknown> {
  return client.query(`SET LOCAL lock_timeout = ${lockWaitMs}; SELECT pg_advisory_xact_lock(${lockKey})`);
}

/** In the caller's transaction, which holds the audit's lock until it ends. */
async function appendIn(client: PoolClient, entry: AuditEntry, hash: AuditHash, macOf: MacOf): Promise<AuditRecord> {
  try {
    await lockAudit(client);
    const { rows } = await client.query<Pick<AuditRecord, "seq" | "hash"> & { readonly mac: Buffer | null }>(
      "SELECT seq, hash, mac FROM audit ORDER BY seq DESC LIMIT 1",
    );
    const seq = (rows[0]?.seq ?? 0) + 1;
    const record = { ...entry, seq, hash: hash(rows[0]?.hash ?? start, seq) };
    await client.query(
      `INSERT INTO audit (${columns}, mac) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)`,
      [...valuesOf(record), macOf(seq, record.hash, rows[0]?.mac ?? null)],
    );
    return record;
  } catch (error) {
    if (!(error instanceof DatabaseError && error.code === lockNotAvailable)) throw error;
    throw new ServiceError("unavailable", "The audit is locked.", { retryAfterS: 2, cause: error });
  }
}

function valuesOf(record: AuditRecord): unknown[] {
  const { seq, atMs, actor, role, tokenId, address, action, subject, before, after, hash } = record;
  return [seq, atMs, actor, role, tokenId, address, action, subject, before, after, hash];
}

/** An action that is running, whose transactions append its audit entry. */
interface Acting {
  /** @param subject of an object that the action makes */
  append(client: PoolClient, pool: Pool, subject: string): Promise<AuditRecord>;
}

const acting = new AsyncLocalStorage<Acting>();
const composing = new AsyncLocalStorage<{ readonly pool: Pool; readonly client: PoolClient }>();

/** Every transaction that changes something for this action has to call {@link appendEntry}. */
function runActing<Result>(action: Acting, run: () => Result): Result {
  return acting.run(action, run);
}

/**
 * Appends the entry of the running action, as the last thing before COMMIT: the change and its entry are stored
 * together, or neither is. Does nothing if no action is running.
 */
export async function appendEntry(client: PoolClient, pool: Pool, subject = ""): Promise<AuditRecord | undefined> {
  return await acting.getStore()?.append(client, pool, subject);
}

/** Reads in `compose` through {@link seen} see what this transaction has changed. */
function composeWithin<Result>(pool: Pool, client: PoolClient, compose: () => Result): Result {
  return composing.run({ pool, client }, compose);
}

export function seen(pool: Pool): Pool | PoolClient {
  const within = composing.getStore();
  return within?.pool === pool ? within.client : pool;
}

import type { Pool, PoolClient } from "pg";
import type { AuditKeys, AuditRecord } from "../../operators/audit.ts";
import { planned } from "../database/statement.ts";
import { inTransaction } from "../database/transaction.ts";
import { appendEntry } from "./audit.ts";

/** The rows that grant rights: the text that a MAC covers is every column but those that only inform. */
const tables = {
  operators: {
    rows: "true",
    partner: "NULL::uuid",
    hash: "token_hash",
    text: `json_build_array('operator', t.id, t.name, t.role, encode(t.token_hash, 'hex'),
      extract(epoch FROM t.created_at), extract(epoch FROM t.expires_at), extract(epoch FROM t.revoked_at),
      t.subject)::text`,
  },
  partner_keys: {
    rows: "t.kind = 'apiKey'",
    partner: "t.partner_id",
    hash: "material",
    text: `json_build_array('apiKey', t.partner_id, t.id, t.kind, encode(t.material, 'hex'),
      extract(epoch FROM t.active_from), extract(epoch FROM t.expires_at), t.name, t.scopes)::text`,
  },
} as const;
export type SealedTable = keyof typeof tables;
const names = Object.keys(tables) as SealedTable[];

/** A row's seal, as `sealOf` selects it. */
export interface RowSeal {
  readonly text: string;
  /** Base64. */
  readonly mac: string | null;
  /** The number of the entry of its last change. */
  readonly seq: number | null;
  /** The number of the newest entry that changed a row of this id. */
  readonly latest: number | null;
}

/** SQL of the seal of the row `t`. */
export function sealOf(table: SealedTable): string {
  return `json_build_object('text', ${tables[table].text}, 'mac', encode(t.mac, 'base64'), 'seq', t.audit_seq,
    'latest', (SELECT max(s.seq) FROM row_seals s WHERE s.row_id = t.id))`;
}

export interface ChangedRow {
  readonly table: SealedTable;
  readonly id: string;
}

export interface RowSealsParts {
  readonly pool: Pool;
  readonly keys: AuditKeys;
  /** Runs a change that no caller's action makes: its entry names the service. */
  asService<Result>(action: string, run: () => Result): Result;
  /** The version of this process. */
  readonly version: string;
  /** A row was found that is not as its last entry left it. */
  onChanged(row: ChangedRow): void;
  /** From this time on everything has a MAC. */
  onSealed(atMs: number): void;
}

// A new database is sealed at once, another one a day after its migration: until then an older version can come back.
const mayBeSealed = planned(`
  SELECT FROM migrations m WHERE m.number = 70 AND (
    NOT EXISTS (SELECT FROM operators) AND NOT EXISTS (SELECT FROM partners)
    OR m.applied_at < now() - interval '1 day'
      AND NOT EXISTS (SELECT FROM leases l WHERE l.version <> $1 OR l.started_at < m.applied_at))`);

/**
 * Seals the rows that grant rights, operators and API keys: a MAC of each with the number of its last entry in the
 * audit. A row that somebody wrote to the database, or an old one that was copied back, is refused.
 */
export class RowSeals {
  readonly #parts: RowSealsParts;
  readonly #told = new Set<string>();
  #isSealed = false;

  constructor(parts: RowSealsParts) {
    this.#parts = parts;
  }

  /** The last of a transaction before COMMIT: appends the entry of the change, and seals these rows with its number. */
  async seal(client: PoolClient, { table, ids, partnerId = null, action, subject }: SealedChange): Promise<void> {
    const seq = await this.#append(client, action, subject);
    await this.#sealRows(
      client,
      table,
      seq,
      `t.id = ANY ($1::uuid[]) AND ($2::uuid IS NULL OR ${tables[table].partner} = $2)`,
      [ids, partnerId],
    );
  }

  /** Whether a row is as its last entry left it. */
  isIntact(table: SealedTable, id: string, seal: RowSeal): boolean {
    const { text, mac, seq, latest } = seal;
    const isIntact =
      mac === null || seq === null
        ? !this.#isSealed
        : latest === seq && this.#parts.keys.isRight(Buffer.from(mac, "base64"), rowText(seq, text));
    if (!isIntact) this.#tell({ table, id });
    return isIntact;
  }

  /** The hash to store: older versions read plain ones until the database is sealed. */
  toStore(hash: Buffer): Buffer {
    return this.#isSealed ? this.#parts.keys.pepper(hash) : hash;
  }

  /** The forms in which a hash may be stored. */
  storedAs(hash: Buffer): readonly [peppered: Buffer, plain: Buffer] {
    return [this.#parts.keys.pepper(hash), hash];
  }

  /** Rows that are not intact. */
  async changedRows(): Promise<readonly ChangedRow[]> {
    await this.#readMark();
    const changed: ChangedRow[] = [];
    for (const table of names) {
      const { rows } = await this.#parts.pool.query<{ id: string; seal: RowSeal }>(
        `SELECT t.id, ${sealOf(table)} AS seal FROM ${table} t WHERE ${tables[table].rows} ORDER BY t.id`,
      );
      for (const { id, seal } of rows) if (!this.isIntact(table, id, seal)) changed.push({ table, id });
    }
    return changed;
  }

  /** Seals what is there, once: when no process of an older version lives that would write rows without a MAC. */
  async sealDatabase(): Promise<void> {
    if (await this.#readMark()) return;
    const { pool, keys, version } = this.#parts;
    await inTransaction(pool, async (client) => {
      // One instance after the other, as with an entry of the audit.
      await client.query("SELECT pg_advisory_xact_lock(hashtext('paybell sealing'))");
      if ((await client.query("SELECT FROM sealing")).rowCount !== 0) return;
      if ((await mayBeSealed.run(client, [version])) === 0) return;
      for (const table of names) {
        const { hash, rows: which } = tables[table];
        const { rows } = await client.query<{ hash: Buffer }>(
          `SELECT t.${hash} AS hash FROM ${table} t WHERE ${which}`,
        );
        await client.query(
          `UPDATE ${table} t SET ${hash} = i.after FROM unnest($1::bytea[], $2::bytea[]) AS i (before, after)
           WHERE t.${hash} = i.before AND ${which}`,
          [rows.map((row) => row.hash), rows.map((row) => keys.pepper(row.hash))],
        );
      }
      const seq = await this.#append(client, "sealDatabase", "");
      for (const table of names) await this.#sealRows(client, table, seq, tables[table].rows, []);
      await client.query("SELECT seal_database($1)", [seq]);
    });
    await this.#readMark();
  }

  async #append(client: PoolClient, action: string, subject: string): Promise<number> {
    const append = () => appendEntry(client, this.#parts.pool, subject);
    const { seq } = (await append()) ?? ((await this.#parts.asService(action, append)) as AuditRecord);
    return seq;
  }

  async #sealRows(client: PoolClient, table: SealedTable, seq: number, where: string, values: unknown[]) {
    const { text, partner } = tables[table];
    const { rows } = await client.query<{ id: string; partner: string | null; text: string }>(
      `SELECT t.id, ${partner} AS partner, ${text} AS text FROM ${table} t WHERE ${where}`,
      values,
    );
    const macs = rows.map((row) => this.#parts.keys.mac(rowText(seq, row.text)));
    await client.query(
      `UPDATE ${table} t SET audit_seq = $1, mac = i.mac
       FROM unnest($2::uuid[], $3::uuid[], $4::bytea[]) AS i (id, partner, mac)
       WHERE t.id = i.id AND (i.partner IS NULL OR i.partner = ${partner})`,
      [seq, rows.map(({ id }) => id), rows.map((row) => row.partner), macs],
    );
    await client.query(
      "INSERT INTO row_seals (row_id, seq) SELECT DISTINCT i, $1::bigint FROM unnest($2::uuid[]) AS i",
      [seq, rows.map(({ id }) => id)],
    );
  }

  async #readMark(): Promise<boolean> {
    if (this.#isSealed) return true;
    const { rows } = await this.#parts.pool.query<{ at: Date }>("SELECT sealed_at AS at FROM sealing");
    const [mark] = rows;
    if (mark === undefined) return false;
    this.#isSealed = true;
    this.#parts.onSealed(mark.at.getTime());
    return true;
  }

  /** Each row once: a caller may try it again and again. */
  #tell(row: ChangedRow): void {
    const name = `${row.table} ${row.id}`;
    if (this.#told.has(name) || this.#told.size >= toldMax) return;
    this.#told.add(name);
    this.#parts.onChanged(row);
  }
}

const toldMax = 1_000;

export interface SealedChange {
  readonly table: SealedTable;
  readonly ids: readonly string[];
  readonly partnerId?: string | null;
  /** Its name in the audit if the service does it by itself. */
  readonly action: string;
  readonly subject: string;
}

function rowText(seq: number, text: string): string {
  return `row\n${seq}\n${text}`;
}

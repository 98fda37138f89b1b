import { Client } from "pg";
import {
  dayMs,
  dayOf,
  historyTables,
  idsOfDay,
  partitionName,
} from "../packages/server/src/store/schema/partition-days.ts";

export interface HistoryPlan {
  /** Notifications, each with its transaction and one attempt. */
  readonly rows: number;
  readonly rowsPerDay: number;
}

/** History begins so long ago. */
const daysBack = 30;

/** The values that a search looks for, of one row in the middle of history. */
export interface KnownRow {
  readonly partnerId: string;
  readonly id: string;
  readonly transactionId: string;
  readonly reqId: string;
  readonly merchantTransId: string;
}

/** A UUIDv7 of this time: the hash of a number is its random part. */
function idOf(ms: string, seed: string): string {
  return `(overlay(overlay(lpad(to_hex(${ms}), 12, '0') || substr(md5(${seed}), 13, 20)
    placing '7' from 13) placing '8' from 17))::uuid`;
}

/**
 * Years of a busy service in a database: what it wrote for one Sale, copied by SQL with ids, times, orders, cards and
 * results of their own. Partners differ in size: the first has most.
 */
export class HistoryRows {
  readonly #client: Client;

  private constructor(client: Client) {
    this.#client = client;
  }

  static async open(databaseUrl: string): Promise<HistoryRows> {
    const client = new Client({ connectionString: databaseUrl });
    await client.connect();
    // Nothing here must survive a crash.
    await client.query(`
      SET synchronous_commit = off; SET maintenance_work_mem = '512MB'; SET work_mem = '64MB';
      CREATE TEMP VIEW ranked AS SELECT row_number() OVER (ORDER BY id) AS place, id FROM partners`);
    return new HistoryRows(client);
  }

  /**
   * Adds days until there are so many rows. A run that was stopped is continued.
   *
   * @param note told after each day
   */
  async write({ rows, rowsPerDay }: HistoryPlan, note: (line: string) => void): Promise<void> {
    const client = this.#client;
    await client.query(`
      CREATE TEMP TABLE sale_t AS SELECT t.* FROM transactions t
        WHERE t.notification_id IS NOT NULL ORDER BY t.created_at DESC LIMIT 1;
      CREATE TEMP TABLE sale_n AS SELECT n.* FROM notifications n JOIN sale_t t ON t.notification_id = n.id;
      CREATE TEMP TABLE sale_a AS SELECT a.* FROM attempts a JOIN sale_n n ON n.id = a.id`);
    await this.#withoutIndexes(async () => {
      const firstDayMs = dayOf(Date.now()) - daysBack * dayMs;
      for (let day = 0; day * rowsPerDay < rows; day += 1) {
        const startMs = firstDayMs + day * dayMs;
        await this.#addDay(startMs, day * rowsPerDay, rowsPerDay);
        note(`history: ${((day + 1) * rowsPerDay).toLocaleString("en")} notifications`);
      }
    });
    await this.#addTheRest();
    await client.query("VACUUM (ANALYZE)");
  }

  /** Whether an earlier run wrote all of it. */
  async isWhole(): Promise<boolean> {
    return (await this.#client.query("SELECT FROM batches LIMIT 1")).rowCount === 1;
  }

  /** An index that is made at the end costs a tenth. */
  async #withoutIndexes(write: () => Promise<void>): Promise<void> {
    const client = this.#client;
    await client.query(`
      CREATE TABLE IF NOT EXISTS bench_indexes AS SELECT indexname, indexdef FROM pg_indexes
        WHERE tablename = 'transactions' AND schemaname = current_schema() AND indexname <> 'transactions_pkey'`);
    const { rows } = await client.query<{ indexdef: string; indexname: string }>("SELECT * FROM bench_indexes");
    for (const { indexname } of rows) await client.query(`DROP INDEX IF EXISTS ${indexname}`);
    await write();
    for (const { indexdef } of rows) await client.query(indexdef);
    await client.query("DROP TABLE bench_indexes");
  }

  /** A row of the tenth partner, in the middle of history. */
  async knownRow({ rows: rowsMade, rowsPerDay }: HistoryPlan): Promise<KnownRow> {
    const daysMade = Math.ceil(rowsMade / rowsPerDay);
    const [middle] = idsOfDay(dayOf(Date.now()) - (daysBack - Math.ceil(daysMade / 2)) * dayMs);
    const { rows } = await this.#client.query<KnownRow>(
      `SELECT n.partner_id AS "partnerId", n.id, t.id AS "transactionId", t.req_id AS "reqId",
         t.merchant_trans_id AS "merchantTransId"
       FROM notifications n JOIN transactions t ON t.partner_id = n.partner_id AND t.id = n.transaction_id
       WHERE n.partner_id = (SELECT id FROM ranked ORDER BY place OFFSET 9 LIMIT 1) AND n.id < $1
       ORDER BY n.id DESC LIMIT 1`,
      [middle],
    );
    const [row] = rows;
    if (row === undefined) throw new Error("History has no row to search for.");
    return row;
  }

  /** Partners by their number of notifications: the one with most, and the one with fewest. */
  async partners(): Promise<{ readonly largest: string; readonly smallest: string }> {
    const { rows } = await this.#client.query<{ id: string }>("SELECT id FROM ranked ORDER BY place");
    return { largest: rows[0]?.id ?? "", smallest: rows.at(-1)?.id ?? "" };
  }

  /** The settings of auto_explain for connections from now on. */
  async explain(minMs: number): Promise<void> {
    await this.#client.query(`ALTER SYSTEM SET auto_explain.log_min_duration = ${minMs}`);
    await this.#client.query("SELECT pg_reload_conf()");
  }

  async sizes(): Promise<readonly { readonly name: string; readonly bytes: number }[]> {
    const { rows } = await this.#client.query<{ name: string; bytes: string }>(
      `SELECT coalesce(p.parent, c.relname) AS name, sum(pg_total_relation_size(c.oid)) AS bytes
       FROM pg_class c LEFT JOIN LATERAL (
         SELECT i.inhparent::regclass::text AS parent FROM pg_inherits i WHERE i.inhrelid = c.oid) AS p ON true
       WHERE c.relkind = 'r' AND c.relnamespace = current_schema()::regnamespace
       GROUP BY 1 ORDER BY 2 DESC LIMIT 8`,
    );
    return rows.map(({ name, bytes }) => ({ name, bytes: Number(bytes) }));
  }

  async close(): Promise<void> {
    await this.#client.end();
  }

  async #addDay(startMs: number, from: number, count: number): Promise<void> {
    const client = this.#client;
    const [lowest, beyond] = idsOfDay(startMs);
    for (const table of historyTables) {
      const name = partitionName(table, startMs);
      const { rows } = await client.query<{ known: string | null }>("SELECT to_regclass($1) AS known", [name]);
      if (rows[0]?.known != null) continue;
      await client.query("SELECT create_history_partition($1, $2, $3, $4)", [table, name, lowest, beyond]);
    }
    // A partner's share falls with the square of its place: of 100, the first has a tenth, the last 0.5 %.
    await client.query("DROP TABLE IF EXISTS made");
    await client.query(
      `CREATE TEMP TABLE made AS
       SELECT m.*, to_timestamp(m.ms / 1000.0) AS at, ${idOf("m.ms", "'n' || m.i")} AS id,
         ${idOf("m.ms", "'t' || m.i")} AS tx,
         (overlay(overlay(md5('r' || m.i) placing '4' from 13) placing 'a' from 17))::uuid::text AS req_id
       FROM (SELECT i, p.id AS partner_id, ($2::bigint + ((i - $1::bigint) * 86390000.0 / $3::bigint)::bigint) AS ms
         FROM generate_series($1::bigint, $1::bigint + $3::bigint - 1) AS i
         JOIN ranked p ON p.place = 1 + floor(power((hashint8(i)::bigint + 2147483648) / 4294967296.0, 2)
           * (SELECT count(*) FROM ranked))) AS m`,
      [from, startMs, count],
    );
    // The attempts come last: a day with attempts is whole.
    const { rowCount: whole } = await client.query("SELECT FROM attempts a WHERE a.id >= $1 AND a.id < $2 LIMIT 1", [
      lowest,
      beyond,
    ]);
    if (whole === 1) return;
    await client.query("BEGIN");
    await this.#copy("transactions", "sale_t", {
      partner_id: "m.partner_id",
      id: "m.tx",
      chain_id: "m.tx",
      req_id: "m.req_id",
      state: "CASE WHEN m.i % 20 = 0 THEN 'ERROR' ELSE 'SUCCESS' END",
      notification_id: "m.id",
      merchant_trans_id: "'order-' || m.i",
      tid: "'T' || lpad((m.i % 5000)::text, 7, '0')",
      batch_id: "md5(m.partner_id::text || (m.i % 5000) || (m.ms / 86400000))::uuid",
      facts: await this.#varied("SELECT facts::text AS text FROM sale_t"),
      created_at: "m.at",
      completed_at: "m.at + interval '50 milliseconds'",
      lease_id: "NULL",
    });
    await this.#copy("notifications", "sale_n", {
      partner_id: "m.partner_id",
      id: "m.id",
      transaction_id: "m.tx",
      chain_id: "m.tx",
      content: await this.#varied("SELECT content::text AS text FROM sale_n"),
      created_at: "m.at",
      xid: "pg_current_xact_id()",
    });
    await this.#copy("attempts", "sale_a", { partner_id: "m.partner_id", id: "m.id", started_at: "m.at" });
    await client.query("COMMIT");
  }

  /** The facts of the one Sale as an expression, with what differs between Sales put in. */
  async #varied(query: string): Promise<string> {
    const { rows } = await this.#client.query<{ text: string }>(query);
    const text = rows[0]?.text ?? "";
    const { fields } = JSON.parse(text) as { fields: Readonly<Record<string, string>> };
    const values: readonly (readonly [string | undefined, string])[] = [
      [fields["merchantTransId"], "'order-' || m.i"],
      [fields["reqId"], "m.req_id"],
      [fields["refId"], "600000000000 + m.i"],
      [fields["approveCode"], "lpad(to_hex(m.i % 16777216), 6, '0')"],
      [fields["cardNumber"], "'411111******' || lpad((m.i % 10000)::text, 4, '0')"],
      [fields["tid"], "'T' || lpad((m.i % 5000)::text, 7, '0')"],
    ];
    let expression = `$t$${text}$t$`;
    for (const [value, varied] of values) {
      if (value !== undefined) expression = expression.replace(`"${value}"`, () => `"$t$ || ${varied} || $t$"`);
    }
    return `(${expression})::json`;
  }

  /** Whatever the schema is: a column that is new is copied as it is. */
  async #copy(table: string, template: string, changed: Readonly<Record<string, string>>): Promise<void> {
    const { rows } = await this.#client.query<{ name: string }>(
      `SELECT attname AS name FROM pg_attribute
       WHERE attrelid = $1::regclass AND attnum > 0 AND NOT attisdropped AND attgenerated = ''`,
      [table],
    );
    const names = rows.map(({ name }) => name);
    const values = names.map((name) => changed[name] ?? `x.${name}`);
    await this.#client.query(
      `INSERT INTO ${table} (${names.join(", ")}) SELECT ${values.join(", ")} FROM made m CROSS JOIN ${template} x`,
    );
  }

  /** Fills the other tables that a page lists: parked, pending, batches, Reversals, events, endpoints, the audit. */
  async #addTheRest(): Promise<void> {
    await this.#client.query(`
      INSERT INTO parked (partner_id, id, chain_id, round, attempts_made, bytes, reason)
        SELECT partner_id, id, tx, 0, 12, 900, CASE WHEN i % 3 = 0 THEN 'timeout' ELSE 'status' END
        FROM made WHERE i % 13 = 0;
      INSERT INTO pending (partner_id, id, due_at, chain_id, bytes, attempts_made)
        SELECT partner_id, id, now() + interval '1 day', tx, 900, 3 FROM made WHERE i % 13 = 1;
      INSERT INTO batches (partner_id, id, tid, mid, batch_no, currency, settlement_id, sale_quantity, sale_total_minor,
          void_quantity, void_total_minor, refund_quantity, refund_total_minor, closed_at)
        SELECT partner_id, id, 'T' || lpad((i % 5000)::text, 7, '0'), 'M00000000000001',
          lpad((i % 999999)::text, 6, '0'), 'VND', tx, 12, 1800000, 1, 150000, 0, 0, at FROM made;
      INSERT INTO reversals (partner_id, transaction_id, tid, state, due_at, response_code)
        SELECT partner_id, tx, 'T0000001', CASE WHEN i % 1000 = 0 THEN 'PARKED' ELSE 'DONE' END, at, '00' FROM made;
      INSERT INTO events (partner_id, id, kind, subject_id, detail, created_at)
        SELECT partner_id, id, 'notification_parked', id, '{}', at FROM made;
      INSERT INTO endpoints (partner_id, id, target, queue, kind, state, failures, last_reason)
        SELECT partner_id, id, 'https://shop-' || i || '.example', 'https://shop-' || i || '.example', 'origin',
          CASE WHEN i % 400 = 2 THEN 'open' ELSE 'closed' END, 5, 'http_5xx' FROM made WHERE i % 100 = 2;
      INSERT INTO delivery_figures (partner_id, grain, at, accepted, failed, parked, attempt_ms, delivery_ms)
        SELECT p.id, 'minute', date_trunc('minute', now()) - m * interval '1 minute', 3, 1, 0,
          array_fill(1, ARRAY[26]), array_fill(1, ARRAY[26])
        FROM (SELECT id FROM ranked UNION ALL SELECT '00000000-0000-0000-0000-000000000000') AS p,
          generate_series(1, 1499) AS m ON CONFLICT DO NOTHING;
      INSERT INTO delivery_figures (partner_id, grain, at, accepted, failed, parked, attempt_ms, delivery_ms)
        SELECT p.id, 'hour', date_trunc('hour', now()) - h * interval '1 hour', 3, 1, 0,
          array_fill(1, ARRAY[26]), array_fill(1, ARRAY[26])
        FROM (SELECT id FROM ranked UNION ALL SELECT '00000000-0000-0000-0000-000000000000') AS p,
          generate_series(1, 190) AS h ON CONFLICT DO NOTHING;
      INSERT INTO audit (seq, at_ms, actor, role, token_id, address, action, subject, before, after, hash)
        SELECT s + (SELECT coalesce(max(seq), 0) FROM audit), extract(epoch FROM now()) * 1000,
          'support-' || s % 40, 'operator', '', '127.0.0.1',
          'readNotification', md5(s::text)::uuid::text, '', '', md5(s::text) FROM generate_series(1, 200000) AS s`);
  }
}

import { Client } from "pg";
import { MasterKey } from "../packages/server/src/partners/master-key.ts";

const contentKeyName = "notification contents";

/** A backlog made by SQL: what a service wrote for real, copied as often as asked. */
export class BacklogRows {
  readonly #client: Client;
  readonly #pads: readonly [inner: Buffer, outer: Buffer];
  #copies = 0;

  private constructor(client: Client, key: Buffer) {
    this.#client = client;
    const pad = (value: number) => Buffer.from(Array.from({ length: 64 }, (_, at) => (key[at] ?? 0) ^ value));
    this.#pads = [pad(0x36), pad(0x5c)];
  }

  /** @param masterKey of the service, whose MACs the copies need */
  static async open(databaseUrl: string, masterKey: string): Promise<BacklogRows> {
    const client = new Client({ connectionString: databaseUrl });
    await client.connect();
    const { rows } = await client.query<{ sealed: Buffer }>("SELECT sealed FROM sealed_values WHERE name = $1", [
      contentKeyName,
    ]);
    const key = MasterKey.parse(masterKey).openNamed(rows[0]?.sealed ?? Buffer.alloc(0), contentKeyName);
    return new BacklogRows(client, key);
  }

  /**
   * Keeps pending rows, one for each of some partners, as templates to copy. The service sends to none of them
   * meanwhile: what it claimed would be copied as claimed.
   */
  async takeAsTemplates(): Promise<void> {
    await this.#client.query("CREATE TABLE template_pending AS SELECT * FROM pending");
    await this.#client.query(
      `CREATE TABLE template_notifications AS
       SELECT n.* FROM notifications n JOIN template_pending USING (partner_id, id)`,
    );
  }

  /** `rows` more are due, of all partners alike, each with its notification: some 1.5 kB on the disk. */
  async add(rows: number): Promise<void> {
    const { rowCount: partners } = await this.#client.query("SELECT FROM template_pending");
    const each = Math.ceil(rows / Math.max(1, partners ?? 0));
    const range = [this.#copies + 1, this.#copies + each];
    this.#copies += each;
    // The day is at the front of an id, so the copies are in the same partition.
    const id = "(left(t.id::text, 24) || lpad(to_hex(i), 12, '0'))::uuid";
    const fields = `concat_ws(E'\\n', 2, coalesce(t.original_id::text, ''), t.partner_id, ${id}, t.command,
      coalesce(t.callback_url, ''), t.content)`;
    // HMAC-SHA256, as ContentMac makes it.
    const inner = `sha256($3::bytea || convert_to(${fields}, 'UTF8'))`;
    const mac = `'\\x02'::bytea || substr(sha256($4::bytea || ${inner}), 1, 16)`;
    const changed = {
      ...{ id, transaction_id: id, chain_id: id, content_mac: mac },
      due_at: "t.due_at + i * interval '1 microsecond'",
    };
    for (const table of ["notifications", "pending"]) {
      const names = await this.#columns(table);
      const values = names.map((name) =>
        Object.hasOwn(changed, name) ? changed[name as keyof typeof changed] : `t.${name}`,
      );
      await this.#client.query(
        `INSERT INTO ${table} (${names.join(", ")}) SELECT ${values.join(", ")}
         FROM template_${table} t, generate_series($1::integer, $2::integer) AS i`,
        table === "notifications" ? [...range, ...this.#pads] : range,
      );
    }
  }

  async close(): Promise<void> {
    await this.#client.end();
  }

  /** Whatever the schema is: a column that is new is copied as it is. */
  async #columns(table: string): Promise<readonly string[]> {
    const { rows } = await this.#client.query<{ name: string }>(
      `SELECT attname AS name FROM pg_attribute
       WHERE attrelid = $1::regclass AND attnum > 0 AND NOT attisdropped AND attgenerated = ''`,
      [table],
    );
    return rows.map(({ name }) => name);
  }
}

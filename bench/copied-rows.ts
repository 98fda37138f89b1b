import type { Client } from "pg";

/**
 * Writes the rows of a table of the same form again, for each number i of a range.
 *
 * @param changed what a column has instead, in SQL: of `t`, the row, and `i`
 * @param values the first two are the range
 */
export async function copyRows(
  client: Client,
  table: string,
  from: string,
  changed: Readonly<Record<string, string>>,
  values: readonly unknown[],
): Promise<void> {
  // Whatever the schema is: a column that is new is copied as it is.
  const { rows } = await client.query<{ name: string }>(
    `SELECT attname AS name FROM pg_attribute
     WHERE attrelid = $1::regclass AND attnum > 0 AND NOT attisdropped AND attgenerated = ''`,
    [table],
  );
  const names = rows.map(({ name }) => name);
  await client.query(
    `INSERT INTO ${table} (${names.join(", ")}) SELECT ${names.map((name) => changed[name] ?? `t.${name}`).join(", ")}
     FROM ${from} t, generate_series($1::integer, $2::integer) AS i`,
    [...values],
  );
}

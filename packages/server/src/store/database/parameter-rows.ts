/** Array parameters by the column that each one holds, such as `$1::uuid[]`. */
export type ParameterColumns = Readonly<Record<string, string>>;

/**
 * Rows of these columns, for a statement to select from. Each INSERT of a statement reads the parameters itself: Citus
 * would send rows that several of them share to every node. Measured: on PostgreSQL alone it costs no more.
 *
 * @param names with commas between them
 */
export function rowsOf(columns: ParameterColumns, names: string): string {
  const selected = names
    .trim()
    .split(/,\s+/)
    .map((name) => `unnest(${columns[name]}) AS ${name}`);
  return `(SELECT ${selected.join(", ")})`;
}

/** Array parameters by column, such as `$1::uuid[]`. */
export type ParameterColumns = Readonly<Record<string, string>>;

/**
 * Rows of these columns, for a statement to select from. Each INSERT of a statement reads the parameters itself: Citus
 * would send rows that several of them share to every node. Measured: on plain PostgreSQL it costs no more.
 *
 * @param names separated by commas
 */
export function rowsOf(columns: ParameterColumns, names: string): string {
  const selected = names
    .trim()
    .split(/,\s+/)
    .map((name) => `unnest(${columns[name]}) AS ${name}`);
  return `(SELECT ${selected.join(", ")})`;
}

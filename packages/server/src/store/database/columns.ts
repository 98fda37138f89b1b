import { booleanArray, bytesArray, doubleArray, integerArray, jsonArray, textArray, uuidArray } from "./arrays.ts";

const kinds = {
  uuid: ["uuid[]", uuidArray],
  text: ["text[]", textArray],
  json: ["json[]", jsonArray],
  integer: ["integer[]", integerArray],
  bigint: ["bigint[]", (values: readonly (bigint | null | undefined)[]) => values],
  double: ["double precision[]", doubleArray],
  boolean: ["boolean[]", booleanArray],
  bytes: ["bytea[]", bytesArray],
} as const;
type Kind = keyof typeof kinds;
type ValueOf<Name extends Kind> = Parameters<(typeof kinds)[Name][1]>[0][number];

/** The type of a column, and how a row has its value. */
type Column<Row, With> = {
  readonly [Name in Kind]: readonly [type: Name, value: (row: Row, shared: With) => ValueOf<Name>];
}[Kind];

/** By the names of the columns, in the order of their parameters: the first is $1. */
export type ColumnList<Row, With = void> = Readonly<Record<string, Column<Row, With>>>;

/**
 * Rows as one array parameter for each column: the statement's text and its values come from the same list.
 *
 * @typeParam With what the values of all rows depend on
 */
export class Columns<Row, With = void> {
  readonly #columns: readonly { readonly name: string; readonly parameter: string }[];
  readonly #encode: readonly ((rows: readonly Row[], shared: With) => unknown)[];

  constructor(list: ColumnList<Row, With>) {
    const entries = Object.entries(list);
    this.#columns = entries.map(([name, [kind]], at) => ({ name, parameter: `$${at + 1}::${kinds[kind][0]}` }));
    this.#encode = entries.map(([, [kind, read]]) => {
      const encode = kinds[kind][1] as (values: readonly unknown[]) => unknown;
      return (rows, shared) => encode(rows.map((row) => read(row, shared)));
    });
  }

  /** The rows `i`, with all columns, to select from. */
  get rows(): string {
    return `${this.#unnested} AS i (${this.#names})`;
  }

  /** The rows `i` with their numbers `no`, from 1. */
  get numbered(): string {
    return `${this.#unnested} WITH ORDINALITY AS i (${this.#names}, no)`;
  }

  get #unnested(): string {
    return `unnest(${this.#columns.map(({ parameter }) => parameter).join(", ")})`;
  }

  get #names(): string {
    return this.#columns.map(({ name }) => name).join(", ");
  }

  /**
   * The rows `i`, with some columns. Each INSERT of a statement reads the parameters itself: Citus would send rows that
   * several of them share to every node. Measured: on plain PostgreSQL it costs no more.
   *
   * @param names separated by commas
   */
  some(names: string): string {
    const parameters = new Map(this.#columns.map(({ name, parameter }) => [name, parameter]));
    const selected = names
      .trim()
      .split(/,\s+/)
      .map((name) => `unnest(${parameters.get(name)}) AS ${name}`);
    return `(SELECT ${selected.join(", ")}) AS i`;
  }

  values(rows: readonly Row[], shared: With): unknown[] {
    return this.#encode.map((encode) => encode(rows, shared));
  }
}

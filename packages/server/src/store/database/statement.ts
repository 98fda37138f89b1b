import { createHash } from "node:crypto";
import type { ClientBase } from "pg";

/** A connection, or a pool of them. */
export type Connection = Pick<ClientBase, "query">;

/** A statement, and the type of its rows. Each runs it, in the order of the calls on one connection. */
export interface Statement<Row extends object> {
  rows(on: Connection, values?: readonly unknown[]): Promise<readonly Row[]>;
  first(on: Connection, values?: readonly unknown[]): Promise<Row | undefined>;
  /** @returns the number of rows that it changed or returned */
  run(on: Connection, values?: readonly unknown[]): Promise<number>;
}

/**
 * A statement of the engine: each connection plans it once. PostgreSQL knows it by a name, which follows from the text,
 * so that one name never means two statements.
 */
export function prepared<Row extends object>(text: string): Statement<Row> {
  return statementOf({ name: createHash("sha256").update(text).digest("base64url"), text });
}

/** A statement that is planned each time, with its values, such as one for people: it reads only the days it needs. */
export function planned<Row extends object>(text: string): Statement<Row> {
  return statementOf({ text });
}

function statementOf<Row extends object>(statement: { readonly name?: string; readonly text: string }): Statement<Row> {
  const query = (on: Connection, values: readonly unknown[] = []) =>
    on.query<Row>({ ...statement, values: values as unknown[] });
  return {
    rows: async (on, values) => (await query(on, values)).rows,
    first: async (on, values) => (await query(on, values)).rows[0],
    run: async (on, values) => (await query(on, values)).rowCount ?? 0,
  };
}

/** Runs a statement whose last value bounds its rows until it changes fewer: each run is a short transaction. */
export async function runInBatches(
  on: Connection,
  statement: Pick<Statement<object>, "run">,
  values: readonly unknown[],
  rowsMax = 5_000,
): Promise<void> {
  while ((await statement.run(on, [...values, rowsMax])) === rowsMax);
}

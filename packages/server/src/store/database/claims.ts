import type { Homes } from "./homes.ts";
import { prepared } from "./statement.ts";

/** The rows of a table that are due at some time, for the work on them. In its SQL, `r` is the row. */
interface DueRows {
  readonly table: string;
  /** The column that finds a row of a partner. */
  readonly key: string;
  readonly dueAt: string;
  readonly where?: string;
  /** Columns of `due`: Citus neither returns what depends on the time nor takes it in CASE and COALESCE. */
  readonly reads?: string;
  readonly changes?: string;
  readonly returning: string;
}

export type Claim<Row extends object> = (homes: Homes, rowsMax: number, heldForMs: number) => Promise<readonly Row[]>;

/**
 * Claims what is due until its work must have ended: if the claiming instance is dead by then, another one repeats it.
 * One that another instance is claiming is left to that.
 */
export function dueClaim<Row extends object>(rows: DueRows): Claim<Row> {
  const { table, key, dueAt, where, reads, changes, returning } = rows;
  const claim = prepared<Row>(`
    WITH due AS MATERIALIZED (
      SELECT r.partner_id, r.${key}${reads === undefined ? "" : `, ${reads}`} FROM ${table} r
      WHERE ${where === undefined ? "" : `${where} AND `}r.${dueAt} <= now()
      ORDER BY r.${dueAt} LIMIT $1 FOR UPDATE SKIP LOCKED)
    UPDATE ${table} r
    SET ${dueAt} = now() + $2 * interval '1 millisecond'${changes === undefined ? "" : `, ${changes}`}
    FROM due WHERE r.partner_id = due.partner_id AND r.${key} = due.${key}
    RETURNING r.partner_id AS "partnerId", ${returning}`);
  return (homes, rowsMax, heldForMs) => {
    const values = [homes.share(rowsMax), heldForMs];
    return homes.gather(({ engine }) => claim.rows(engine, values));
  };
}

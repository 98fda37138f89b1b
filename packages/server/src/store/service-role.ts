import type { ClientBase } from "pg";

/** What the service's role lacks: GRANTs, made from the catalogue. Partitions are reached by their parents. */
const missingGrants = `
  SELECT format('GRANT SELECT, INSERT, UPDATE, DELETE ON %I TO %I', relname, $1::text) AS statement
  FROM pg_class
  WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p') AND NOT relispartition
    AND relname NOT IN ('audit', 'audit_start', 'migrations') AND NOT has_table_privilege($1, oid, 'DELETE')
  UNION ALL
  SELECT format('GRANT SELECT, INSERT ON audit TO %I', $1::text)
  WHERE NOT has_table_privilege($1, 'audit', 'INSERT')
  UNION ALL
  SELECT format('GRANT SELECT ON audit_start, migrations TO %I', $1::text)
  WHERE NOT has_table_privilege($1, 'audit_start', 'SELECT')
  UNION ALL
  SELECT format('GRANT EXECUTE ON FUNCTION %s TO %I', oid::regprocedure, $1::text)
  FROM pg_proc
  WHERE pronamespace = current_schema()::regnamespace AND prosecdef AND NOT has_function_privilege($1, oid, 'EXECUTE')
  UNION ALL
  SELECT format('GRANT USAGE ON SCHEMA %I TO %I', current_schema(), $1::text)
  WHERE NOT has_schema_privilege($1, current_schema(), 'USAGE')`;

/**
 * Lets the service's role read and write rows. It changes no table, adds to the audit and changes nothing there, and
 * makes and drops days of history by the functions that do only that.
 *
 * @param owner a connection of the role that owns the schema
 */
export async function grantToService(owner: ClientBase, role: string): Promise<void> {
  const { rows } = await owner.query<{ statement: string }>(missingGrants, [role]);
  for (const { statement } of rows) await owner.query(statement);
}

import type { ClientBase } from "pg";
import { schemasOfHomes } from "./citus.ts";

/** GRANTs that the role lacks, generated from the catalogue. Partitions are accessed through their parents. */
const missingGrants = `
  WITH schemas AS (
    SELECT oid, nspname FROM pg_namespace WHERE nspname = ANY (current_schema() || $2::text[]))
  SELECT format('GRANT SELECT, INSERT, UPDATE, DELETE ON %s TO %I', c.oid::regclass, $1::text) AS statement
  FROM pg_class c JOIN schemas s ON s.oid = c.relnamespace
  WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition
    AND c.relname NOT IN ('audit', 'audit_start', 'migrations', 'row_seals', 'sealing')
    AND NOT has_table_privilege($1, c.oid, 'DELETE')
  UNION ALL
  SELECT format('GRANT SELECT, INSERT ON audit, row_seals TO %I', $1::text)
  WHERE NOT has_table_privilege($1, 'row_seals', 'INSERT')
  UNION ALL
  SELECT format('GRANT SELECT ON audit_start, migrations, sealing TO %I', $1::text)
  WHERE NOT has_table_privilege($1, 'sealing', 'SELECT')
  UNION ALL
  SELECT format('GRANT EXECUTE ON FUNCTION %s TO %I', f.oid::regprocedure, $1::text)
  FROM pg_proc f JOIN schemas s ON s.oid = f.pronamespace
  WHERE f.prosecdef AND NOT has_function_privilege($1, f.oid, 'EXECUTE')
  UNION ALL
  SELECT format('GRANT USAGE ON SCHEMA %I TO %I', s.nspname, $1::text)
  FROM schemas s WHERE NOT has_schema_privilege($1, s.oid, 'USAGE')`;

/**
 * Lets the service's role read and write rows. It cannot change tables, only appends to the audit, and creates and
 * drops days of history through functions that do nothing else.
 *
 * @param owner a connection of the role that owns the schema
 */
export async function grantToService(owner: ClientBase, role: string): Promise<void> {
  const { rows } = await owner.query<{ statement: string }>(missingGrants, [role, await schemasOfHomes(owner)]);
  for (const { statement } of rows) await owner.query(statement);
}

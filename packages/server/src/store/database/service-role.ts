import type { ClientBase } from "pg";
import { schemasOfHomes } from "./homes.ts";
import { planned } from "./statement.ts";

const everything = ["SELECT", "INSERT", "UPDATE", "DELETE"];

/**
 * The rights of the service's role on tables that its statements do not use in full. It reads and writes the rows of
 * every other table. `columns`: it updates these only.
 */
export const narrowedRights: Readonly<
  Record<string, { readonly rights: readonly string[]; readonly columns?: readonly string[] }>
> = {
  audit: { rights: ["SELECT", "INSERT"] },
  audit_start: { rights: ["SELECT"] },
  row_seals: { rights: ["SELECT", "INSERT"] },
  sealing: { rights: ["SELECT"] },
  migrations: { rights: ["SELECT"] },
  notifications: { rights: ["SELECT", "INSERT", "DELETE"] },
  attempts: { rights: ["SELECT", "INSERT", "DELETE"] },
  proofs: { rights: ["SELECT", "INSERT", "DELETE"] },
  ended_sessions: { rights: ["SELECT", "INSERT", "DELETE"] },
  shards: { rights: ["SELECT", "UPDATE"] },
  restores: { rights: ["SELECT", "INSERT", "UPDATE"] },
  alert_quiet: { rights: ["SELECT", "INSERT", "UPDATE"] },
  two_admin_rule: { rights: ["SELECT", "INSERT"], columns: ["minutes"] },
  operators: {
    rights: ["SELECT", "INSERT", "DELETE"],
    columns: ["token_hash", "last_used_at", "revoked_at", "audit_seq", "mac"],
  },
  partner_keys: {
    rights: ["SELECT", "INSERT", "DELETE"],
    columns: ["material", "expires_at", "seals", "last_used_at", "audit_seq", "mac"],
  },
};

/** A table, with the rights that a role has on it. */
interface TableRights {
  readonly name: string;
  readonly table: string;
  /** Whether this connection's role owns it: another program may have tables in the schema. */
  readonly isOurs: boolean;
  readonly rights: readonly string[];
  /** Of which it may update, by a right on the table or on the column. */
  readonly columns: readonly string[];
}

const rightsOfTables = planned<TableRights>(`
  SELECT c.oid::regclass::text AS name, c.relname AS table, pg_has_role(c.relowner, 'USAGE') AS "isOurs", array(
    SELECT p FROM unnest($3::text[]) AS p WHERE has_table_privilege($1, c.oid, p)) AS rights, array(
    SELECT a.attname::text FROM pg_attribute a
    WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
      AND has_column_privilege($1, c.oid, a.attnum, 'UPDATE')) AS columns
  FROM pg_class c JOIN pg_namespace s ON s.oid = c.relnamespace
  WHERE s.nspname = ANY (current_schema() || $2::text[])
    AND c.relkind IN ('r', 'p') AND NOT c.relispartition`);

async function readRights(client: ClientBase, role: string, schemas: readonly string[]) {
  return await rightsOfTables.rows(client, [role, schemas, everything]);
}

/** The rights that the service's statements need on a table, and whether the role has others, or lacks one. */
function compare({ table, rights, columns }: TableRights) {
  const { rights: wanted, columns: updated = [] } = narrowedRights[table] ?? { rights: everything };
  const mayUpdate = (column: string) => wanted.includes("UPDATE") || updated.includes(column);
  return {
    wanted,
    updated,
    isMore: rights.some((right) => !wanted.includes(right)) || !columns.every(mayUpdate),
    isLess: wanted.some((right) => !rights.includes(right)) || updated.some((one) => !columns.includes(one)),
  };
}

/** The tables of which this connection's role could change more than a statement of the service does. */
export async function readExcessRights(client: ClientBase): Promise<readonly string[]> {
  const { rows } = await client.query<{ role: string }>("SELECT current_user::text AS role");
  const tables = await readRights(client, rows[0]?.role ?? "", await schemasOfHomes(client));
  return [...new Set(tables.filter((one) => compare(one).isMore).map(({ table }) => table))].sort();
}

const missingGrants = planned<{ statement: string }>(`
  WITH schemas AS (
    SELECT oid, nspname FROM pg_namespace WHERE nspname = ANY (current_schema() || $2::text[]))
  SELECT format('GRANT EXECUTE ON FUNCTION %s TO %I', f.oid::regprocedure, $1::text) AS statement
  FROM pg_proc f JOIN schemas s ON s.oid = f.pronamespace
  WHERE f.prosecdef AND pg_has_role(f.proowner, 'USAGE') AND NOT has_function_privilege($1, f.oid, 'EXECUTE')
  UNION ALL
  SELECT format('GRANT USAGE ON SCHEMA %I TO %I', s.nspname, $1::text)
  FROM schemas s WHERE NOT has_schema_privilege($1, s.oid, 'USAGE')`);

/** The SQLSTATE. Older releases of Citus grant no rights on columns of the tables that every node has. */
const notSupported = "0A000";

const cannotBeNarrowed = planned(
  "SELECT FROM pg_roles r WHERE r.rolname = $1 AND (r.rolsuper OR r.rolname = current_user)",
);

/**
 * Gives the service's role the rights that its statements need, and takes back any other, from the catalogue. It cannot
 * change tables, only appends to the audit, and creates and drops days of history through functions that do nothing
 * else. Partitions are accessed through their parents.
 *
 * @param owner a connection of the role that owns the schema
 */
export async function grantToService(owner: ClientBase, role: string): Promise<void> {
  if ((await cannotBeNarrowed.run(owner, [role])) !== 0) return;
  const schemas = await schemasOfHomes(owner);
  const tables = (await readRights(owner, role, schemas)).filter(({ isOurs }) => isOurs);
  const quoted = `"${role.replaceAll('"', '""')}"`;
  for (const one of tables) {
    const { name } = one;
    const { wanted, updated, isMore, isLess } = compare(one);
    if (!isMore && !isLess) continue;
    const give = async (update: string) => {
      await owner.query("BEGIN");
      if (isMore) await owner.query(`REVOKE ALL ON ${name} FROM ${quoted}`);
      await owner.query(`GRANT ${wanted.join(", ")}${update} ON ${name} TO ${quoted}`);
      await owner.query("COMMIT");
    };
    const update = updated.length > 0 ? `, UPDATE (${updated.join(", ")})` : "";
    await give(update).catch(async (error: unknown) => {
      await owner.query("ROLLBACK");
      if (update === "" || (error as { code?: unknown }).code !== notSupported) throw error;
      await give(", UPDATE");
    });
  }
  const rows = await missingGrants.rows(owner, [role, schemas]);
  for (const { statement } of rows) await owner.query(statement);
}

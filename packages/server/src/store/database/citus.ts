import type { Client, ClientBase } from "pg";
import { shardCount } from "../../shard.ts";
import { withClient } from "./client.ts";

/** A home on Citus: a schema, and the node that stores it. */
export interface HomeAddress {
  readonly connectionString: string;
  readonly schema: string;
}

/** Small tables that statements of every home read: each node has a copy. */
const referenceTables = ["partners", "partner_keys", "terminal_claims", "alert_quiet", "acquirers"];

/** More homes than nodes, so that they can be moved when nodes are added. */
const homesPerNode = 4;

const isCoordinator = "SELECT FROM pg_extension WHERE extname = 'citus'";

const nodes = "SELECT count(*)::integer AS count FROM pg_dist_node WHERE noderole = 'primary' AND shouldhaveshards";

const homeSchemas = `
  SELECT nspname AS schema FROM pg_namespace WHERE nspname ~ '^home_[0-9]+$' ORDER BY substr(nspname, 6)::integer`;

// All tables of a home are on one node, so one of them determines it.
const homeAddresses = `
  SELECT m.nspname AS schema, n.nodename AS host, n.nodeport AS port
  FROM pg_namespace m
  JOIN pg_class c ON c.relnamespace = m.oid AND c.relname = 'pending'
  JOIN pg_dist_shard s ON s.logicalrelid = c.oid
  JOIN pg_dist_placement p ON p.shardid = s.shardid
  JOIN pg_dist_node n ON n.groupid = p.groupid AND n.noderole = 'primary'
  WHERE m.nspname ~ '^home_[0-9]+$' ORDER BY substr(m.nspname, 6)::integer`;

/** The schemas to which a migration of homes is applied; none on plain PostgreSQL. */
export async function schemasOfHomes(client: ClientBase): Promise<readonly string[]> {
  if ((await client.query(isCoordinator)).rowCount === 0) return [];
  const { rows: made } = await client.query<{ schema: string }>(homeSchemas);
  if (made.length > 0) return made.map(({ schema }) => schema);
  const { rows } = await client.query<{ count: number }>(nodes);
  return Array.from({ length: homesFor(rows[0]?.count ?? 0) }, (_, no) => `home_${no}`);
}

/** A power of two, so that each home has the same number of shards. */
export function homesFor(nodeCount: number): number {
  if (nodeCount === 0) throw new Error("Citus has no node that takes data: add one with citus_add_node().");
  return Math.min(shardCount, 2 ** Math.ceil(Math.log2(nodeCount * homesPerNode)));
}

/** Within the transaction of a migration: from here on, table names refer to that home. */
export async function enterHome(client: Client, schema: string): Promise<void> {
  await client.query("SET LOCAL citus.enable_schema_based_sharding = on");
  await client.query(`CREATE SCHEMA IF NOT EXISTS ${schema}`);
  await client.query(`SET LOCAL search_path = ${schema}, public`);
}

/** Within the transaction of a migration: copies the new tables that statements of homes read to every node. */
export async function copyReferenceTables(client: Client): Promise<void> {
  if ((await client.query(isCoordinator)).rowCount === 0) return;
  await client.query(
    `SELECT create_reference_table(t.name::regclass) FROM unnest($1::text[]) AS t (name)
     WHERE to_regclass(t.name) IS NOT NULL
       AND NOT EXISTS (
         SELECT FROM pg_dist_partition d WHERE d.logicalrelid = to_regclass(t.name) AND d.partmethod = 'n')`,
    [referenceTables],
  );
}

/** The homes of a migrated database; undefined on plain PostgreSQL, which is one home. */
export async function findHomes(connectionString: string): Promise<readonly HomeAddress[] | undefined> {
  return withClient({ connectionString, query_timeout: 15_000 }, async (client) => {
    if ((await client.query(isCoordinator)).rowCount === 0) return undefined;
    const { rows } = await client.query<{ schema: string; host: string; port: number }>(homeAddresses);
    return rows.map(({ schema, host, port }) => ({ connectionString: at(connectionString, host, port), schema }));
  });
}

/** The same user, password, database and settings, at another address. */
function at(connectionString: string, host: string, port: number): string {
  const url = new URL(connectionString);
  url.hostname = host;
  url.port = String(port);
  return url.href;
}

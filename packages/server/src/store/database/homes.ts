import type { Client, ClientBase, Pool } from "pg";
import { homeOf, type PartnerId, shardCount, shardOf } from "../../ids.ts";
import { withClient } from "./client.ts";
import { planned } from "./statement.ts";

/**
 * The place of some partners' rows: plain PostgreSQL is one home, on Citus a home is a schema on one of the nodes. Its
 * connections go to that node, so that no statement needs another one.
 */
export interface Home {
  /** For queries of people and administration. */
  readonly pool: Pool;
  /** For the engine's statements. */
  readonly engine: Pool;
  /** For creating and dropping tables: with Citus only at the coordinator. */
  readonly ddl: Pool;
  /**
   * Whether one part of a statement may pass rows to another that inserts them. Citus sends such rows to every node and
   * commits in two phases, so one unavailable node would stop all homes. There, it is done step by step.
   */
  readonly handsRowsOn: boolean;
}

interface OfPartner {
  readonly partnerId: PartnerId;
}

/** One instance per home. */
export interface PerHome<One> {
  of(partnerId: PartnerId): One;
}

/** Finds the connections for a partner. Consecutive shards share a home. */
export class Homes {
  readonly all: readonly Home[];

  /** @param all their number must divide the number of shards */
  constructor(all: readonly Home[]) {
    this.all = all;
  }

  of(partnerId: PartnerId): Home {
    return this.#at(shardOf(partnerId));
  }

  /** Makes one instance per home. */
  each<One>(make: (home: Home) => One): PerHome<One> {
    const made = new Map(this.all.map((home) => [home, make(home)]));
    // Every home is one of `all`.
    return { of: (partnerId) => made.get(this.of(partnerId)) as One };
  }

  /** Queries each home about its own items concurrently, and joins the answers. */
  async askAbout<Item, Answer>(
    items: readonly Item[],
    shardOfItem: (item: Item) => number,
    ask: (home: Home, some: readonly Item[]) => Promise<readonly Answer[]>,
  ): Promise<readonly Answer[]> {
    const asked = [...this.#split(items, shardOfItem)];
    return (await Promise.all(asked.map(([home, some]) => ask(home, some)))).flat();
  }

  /** Groups the items by home. */
  #split<Item>(items: readonly Item[], shardOfItem: (item: Item) => number): ReadonlyMap<Home, readonly Item[]> {
    const [only, ...others] = this.all;
    if (only !== undefined && others.length === 0) return new Map([[only, items]]);
    const byHome = new Map<Home, Item[]>();
    for (const item of items) {
      const home = this.#at(shardOfItem(item));
      const some = byHome.get(home);
      if (some === undefined) byHome.set(home, [item]);
      else some.push(item);
    }
    return byHome;
  }

  /** Queries each home about its own items concurrently. One answer per item, in order. */
  async ask<Item extends OfPartner, Answer>(
    items: readonly Item[],
    ask: (home: Home, some: readonly Item[]) => Promise<readonly Answer[]>,
  ): Promise<readonly Answer[]> {
    const answers = new Map<Item, Answer>();
    const asked = [...this.#split(items, ({ partnerId }) => shardOf(partnerId))];
    await Promise.all(
      asked.map(async ([home, some]) => {
        const told = await ask(home, some);
        for (const [nth, item] of some.entries()) answers.set(item, told[nth] as Answer);
      }),
    );
    return items.map((item) => answers.get(item) as Answer);
  }

  /** Runs the same query at every home. */
  async gather<Answer>(ask: (home: Home) => Promise<readonly Answer[]>): Promise<readonly Answer[]> {
    return (await Promise.all(this.all.map(ask))).flat();
  }

  /** The share of `rowsMax` rows that each home may contribute. */
  share(rowsMax: number): number {
    return Math.ceil(rowsMax / this.all.length);
  }

  #at(shard: number): Home {
    const home = this.all[homeOf(shard, this.all.length)];
    if (home === undefined) throw new Error(`No home holds shard ${shard}.`);
    return home;
  }
}

/** A home on Citus: a schema, and the node that stores it. */
export interface HomeAddress {
  readonly connectionString: string;
  readonly schema: string;
}

/** Small tables that statements of every home read: each node has a copy. */
const referenceTables = ["partners", "partner_keys", "terminal_claims", "alert_quiet", "acquirers"];

/** More homes than nodes, so that they can be moved when nodes are added. */
const homesPerNode = 4;

const isCoordinator = planned("SELECT FROM pg_extension WHERE extname = 'citus'");

const nodes = planned<{ count: number }>(
  "SELECT count(*)::integer AS count FROM pg_dist_node WHERE noderole = 'primary' AND shouldhaveshards",
);

const homeSchemas = planned<{ schema: string }>(`
  SELECT nspname AS schema FROM pg_namespace WHERE nspname ~ '^home_[0-9]+$' ORDER BY substr(nspname, 6)::integer`);

// All tables of a home are on one node, so one of them determines it.
const homeAddresses = planned<{ schema: string; host: string; port: number }>(`
  SELECT m.nspname AS schema, n.nodename AS host, n.nodeport AS port
  FROM pg_namespace m
  JOIN pg_class c ON c.relnamespace = m.oid AND c.relname = 'pending'
  JOIN pg_dist_shard s ON s.logicalrelid = c.oid
  JOIN pg_dist_placement p ON p.shardid = s.shardid
  JOIN pg_dist_node n ON n.groupid = p.groupid AND n.noderole = 'primary'
  WHERE m.nspname ~ '^home_[0-9]+$' ORDER BY substr(m.nspname, 6)::integer`);

/** The schemas to which a migration of homes is applied; none on plain PostgreSQL. */
export async function schemasOfHomes(client: ClientBase): Promise<readonly string[]> {
  if ((await isCoordinator.run(client)) === 0) return [];
  const made = await homeSchemas.rows(client);
  if (made.length > 0) return made.map(({ schema }) => schema);
  const row = await nodes.first(client);
  return Array.from({ length: homesFor(row?.count ?? 0) }, (_, no) => `home_${no}`);
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
  if ((await isCoordinator.run(client)) === 0) return;
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
    if ((await isCoordinator.run(client)) === 0) return undefined;
    const rows = await homeAddresses.rows(client);
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

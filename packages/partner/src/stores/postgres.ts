import { linksOf } from "./chains.ts";
import {
  checkedDays,
  checkedTable,
  type KnownIpn,
  linkedChains,
  linkTo,
  noTable,
  retentionDaysDefault,
  type SqlStore,
} from "./store.ts";

/** The part of a `pg` PoolClient that is used. */
export interface PostgresClient {
  query(text: string, values?: unknown[]): Promise<{ rows: unknown[] }>;
  release(error?: Error | boolean): void;
  on(event: "error", listener: (error: Error) => void): unknown;
  removeListener(event: "error", listener: (error: Error) => void): unknown;
}

/** The part of a `pg` Pool that is used. */
export interface PostgresPool {
  connect(): Promise<PostgresClient>;
}

/**
 * The type that the pool's connect() resolves to. `pg` declares two overloads, and inference would choose the other
 * one.
 */
type ClientOf<Pool> = Pool extends { connect(): Promise<infer Client>; connect(callback: never): unknown }
  ? Client
  : Pool extends { connect(): Promise<infer Client> }
    ? Client
    : never;

// The service waits 15 s for a response, so waiting longer for a running duplicate only holds a connection.
const lockTimeoutMs = 10_000;
const forgottenAtOnce = 5_000;

/**
 * Records IPNs and your own writes in one PostgreSQL transaction: your function gets its client. A statement of this
 * transaction waits at most 10 s for a lock.
 *
 * @param pool of `pg`; each IPN uses one connection while your function runs
 */
export function postgresStore<Pool extends PostgresPool>(
  pool: Pool,
  options: {
    /** Default paybell_ipns. */
    readonly table?: string;
  } = {},
): SqlStore<ClientOf<Pool>> {
  const table = checkedTable(options.table ?? "paybell_ipns");
  const index = table.replace(".", "_");
  const ddl = `CREATE TABLE IF NOT EXISTS ${table} (
  id text PRIMARY KEY,
  chain text NOT NULL,
  facts text NOT NULL,
  seen_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX IF NOT EXISTS ${index}_by_chain ON ${table} (chain);
CREATE INDEX IF NOT EXISTS ${index}_by_time ON ${table} (seen_at);
`;
  const insert = `INSERT INTO ${table} (id, chain, facts) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING RETURNING id`;
  const select = `SELECT facts FROM ${table} WHERE chain = ANY($1::text[]) AND id <> $2 ORDER BY seen_at, id`;
  const find = `SELECT 1 FROM ${table} WHERE id = $1`;
  const remove = `WITH gone AS (DELETE FROM ${table} WHERE id IN (SELECT id FROM ${table}
    WHERE seen_at < now() - make_interval(days => $1) LIMIT ${forgottenAtOnce}) RETURNING 1)
    SELECT count(*)::int AS count FROM gone`;

  /** IPNs of one chain, from any process, wait here for each other. Each then sees what the previous one wrote. */
  async function enter(client: PostgresClient, chain: string): Promise<void> {
    await client.query(`BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL lock_timeout = ${lockTimeoutMs}`);
    await lock(client, chain);
  }

  async function lock(client: PostgresClient, chain: string): Promise<void> {
    await client.query("SELECT pg_advisory_xact_lock(hashtextextended($1, 0))", [`${table} ${chain}`]);
  }

  async function factsIn(client: PostgresClient, chains: readonly string[], except: string): Promise<string[]> {
    const { rows } = await client.query(select, [chains, except]);
    return (rows as { facts: string }[]).map(({ facts }) => facts);
  }

  /** For statements that run before any of yours: undefined_table then means the store's own table. */
  const tellNoTable = (error: unknown): never => {
    throw Object(error).code === "42P01" ? noTable(table, error) : error;
  };

  return {
    ddl,
    createTable: () =>
      withClient(pool, async (client) => {
        // Two sessions that create the same table concurrently fail, in spite of IF NOT EXISTS.
        await enter(client, "ddl");
        await client.query(ddl);
        await client.query("COMMIT");
      }),
    forget: (days = retentionDaysDefault) =>
      withClient(pool, async (client) => {
        for (let sum = 0; ; ) {
          const { rows } = await client.query(remove, [Math.ceil(checkedDays(days))]).catch(tellNoTable);
          const [{ count }] = rows as [{ count: number }];
          sum += count;
          if (count < forgottenAtOnce) return sum;
        }
      }),
    once: (seen, runs) =>
      withClient(pool, async (client) => {
        const { id, chain, facts } = seen;
        await enter(client, chain);
        const inserted = await client.query(insert, [id, chain, JSON.stringify(facts)]).catch(tellNoTable);
        if (inserted.rows.length === 0) {
          await client.query("ROLLBACK");
          return "duplicate";
        }
        const known = (await factsIn(client, [chain], id)).map((text) => JSON.parse(text) as KnownIpn);
        const links = linksOf(facts, known);
        for (const link of links) await lock(client, link);
        if (links.length > 0) {
          const others = linkedChains(chain, await factsIn(client, links, id));
          known.push(...(await factsIn(client, others, id)).map((text) => JSON.parse(text) as KnownIpn));
          const own = linkTo(seen);
          for (const link of linksOf(facts, [])) await client.query(insert, [own.id, link, own.facts]);
        }
        await runs(client as ClientOf<Pool>, known);
        // After a statement that failed, COMMIT rolls back without an error; this fails.
        const kept = await client.query(find, [id]);
        if (kept.rows.length === 0) throw new Error("Your function ended the transaction: only the store may end it.");
        await client.query("COMMIT");
        return "processed";
      }),
  };
}

/** A failure leaves no transaction behind and, if that is not certain, no connection. */
async function withClient<Result>(
  pool: PostgresPool,
  use: (client: PostgresClient) => Promise<Result>,
): Promise<Result> {
  const client = await pool.connect();
  let lost: Error | undefined;
  // A broken connection also emits an event. Without a listener it would end the process.
  const onError = (error: Error) => {
    lost = error;
  };
  client.on("error", onError);
  try {
    return await use(client);
  } catch (error) {
    await client.query("ROLLBACK").catch(onError);
    throw error;
  } finally {
    client.removeListener("error", onError);
    client.release(lost);
  }
}

import { linksOf, serializer } from "./chains.ts";
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

/** The part of node:sqlite's DatabaseSync and of better-sqlite3's Database that is used. */
export interface SqliteDatabase {
  exec(sql: string): unknown;
  prepare(sql: string): {
    run(...values: (string | number)[]): { changes: number | bigint };
    all(...values: (string | number)[]): unknown[];
  };
}

const dayMs = 86_400_000;

/**
 * Records IPNs and your own writes in one SQLite transaction: your function gets the database. A function that awaits
 * leaves the transaction open meanwhile; then give the store its own connection, otherwise other writes on this one are
 * in the transaction too. One IPN is processed at a time.
 */
export function sqliteStore<Database extends SqliteDatabase>(
  database: Database,
  options: {
    /** Default paybell_ipns. */
    readonly table?: string;
  } = {},
): SqlStore<Database> {
  const table = checkedTable(options.table ?? "paybell_ipns");
  const [schema = "", name = ""] = table.includes(".") ? table.split(".") : ["main", table];
  const index = `${schema}.${name}`;
  const ddl = `CREATE TABLE IF NOT EXISTS ${table} (
  id TEXT PRIMARY KEY,
  chain TEXT NOT NULL,
  facts TEXT NOT NULL,
  seen_at INTEGER NOT NULL
);
CREATE INDEX IF NOT EXISTS ${index}_by_chain ON ${name} (chain);
CREATE INDEX IF NOT EXISTS ${index}_by_time ON ${name} (seen_at);
`;
  const insert = `INSERT INTO ${table} (id, chain, facts, seen_at) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING`;
  const select = `SELECT facts FROM ${table} WHERE chain = ? AND id <> ? ORDER BY seen_at, id`;
  const inTurn = serializer();

  /** SQLite looks the table up when a statement is prepared. */
  function prepare(sql: string): ReturnType<SqliteDatabase["prepare"]> {
    try {
      return database.prepare(sql);
    } catch (error) {
      throw /^no such table/.test(Object(error).message) ? noTable(table, error) : error;
    }
  }

  return {
    ddl,
    createTable: () =>
      inTurn("", async () => {
        database.exec(ddl);
      }),
    forget: (days = retentionDaysDefault) =>
      inTurn("", async () => {
        const remove = prepare(`DELETE FROM ${table} WHERE seen_at < ?`);
        return Number(remove.run(Date.now() - checkedDays(days) * dayMs).changes);
      }),
    once: (seen, runs) =>
      inTurn("", async () => {
        const { id, chain, facts } = seen;
        const factsIn = (one: string) =>
          (prepare(select).all(one, id) as { facts: string }[]).map(({ facts: text }) => text);
        // Acquires the write lock at once, so that another process waits here, if busy_timeout says so, and not in the
        // middle.
        database.exec("BEGIN IMMEDIATE");
        try {
          const { changes } = prepare(insert).run(id, chain, JSON.stringify(facts), Date.now());
          if (Number(changes) > 0) {
            const own = factsIn(chain).map((text) => JSON.parse(text) as KnownIpn);
            const others = linkedChains(chain, linksOf(facts, own).flatMap(factsIn));
            const known = [...own, ...others.flatMap(factsIn).map((text) => JSON.parse(text) as KnownIpn)];
            const link = linkTo(seen);
            for (const one of linksOf(facts, [])) prepare(insert).run(link.id, one, link.facts, Date.now());
            const running = runs(database, known);
            // Without a promise no other code runs before the COMMIT.
            if (typeof (running as PromiseLike<unknown> | undefined)?.then === "function") await running;
          }
          database.exec("COMMIT");
          return Number(changes) > 0 ? "processed" : "duplicate";
        } catch (error) {
          rollBack(database);
          throw error;
        }
      }),
  };
}

/** SQLite has rolled some failures back by itself, and then reports that there is no transaction. */
function rollBack(database: SqliteDatabase): void {
  try {
    database.exec("ROLLBACK");
  } catch {
    // Report the original error.
  }
}

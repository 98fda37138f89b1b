import { Client, type ClientBase, type ClientConfig, Pool, type PoolConfig, types } from "pg";
import type { HomeAddress } from "./citus.ts";
import { type Home, Homes } from "./homes.ts";

/**
 * The connections to PostgreSQL, by what they are for. The engine's statements touch a few rows by key, whatever the
 * statistics say: these connections know no plan that reads a whole table. Measured: with statistics taken while
 * `pending` was empty, PostgreSQL chose a sequential scan inside a nested loop, and a DELETE of 500 rows took 30 s on
 * a backlog of a million. And they make one plan of each statement, at its first time: PostgreSQL would make the first
 * five at each connection anew, 20 ms for a claim, and what it then keeps would depend on what it estimated.
 */
export interface Database {
  /** Questions of people and of administration. */
  readonly pool: Pool;
  /** The hot statements about what all partners share: leases, shards, and who the partners are. */
  readonly engine: Pool;
  /** What grows with what partners do. On one PostgreSQL its one home has the same connections. */
  readonly homes: Homes;
  /** One connection of its own, for LISTEN and the lease: never in a queue behind other work. */
  connectDirectly(): Promise<Client>;
  close(): Promise<void>;
}

/** A lease that is believed for 5 s outlives one silence of a server that is gone without a word. */
const directAnswerMs = 3_000;

/** A process that stands still in a transaction holds locks that others wait for, a terminal's for one. */
const idleInTransaction = { idle_in_transaction_session_timeout: "30000" };

const byKeyOnly = ["enable_seqscan", "enable_hashjoin", "enable_mergejoin", "enable_bitmapscan", "enable_material"];

/**
 * Settings of a connection, by a statement of their own when it begins: one round trip in its life. As parameters of
 * the connection's start, PgBouncer refuses them, or drops them without a word.
 */
function begin(settings: Readonly<Record<string, string>>): (client: ClientBase) => Promise<void> {
  const text = Object.entries(settings)
    .map(([name, value]) => `SET ${name} = ${value}`)
    .join("; ");
  return async (client) => {
    await client.query(text);
  };
}

// int8 as a number: our counts stay far below 2^53. xid8 stays text, it is only ever handed back.
const readInt8 = (text: string) => Number(text);
const parsers: ClientConfig["types"] = {
  getTypeParser: ((oid: number, format?: "text" | "binary") =>
    oid === types.builtins.INT8 && format !== "binary"
      ? readInt8
      : types.getTypeParser(oid, format as "text")) as typeof types.getTypeParser,
};

export interface DatabaseOptions {
  readonly connectionsMax: number;
  /** Told of connections that broke while nobody used them; they are replaced. */
  readonly onIdleError: (error: Error) => void;
  /** With Citus, what `findHomes` told. */
  readonly homes?: readonly HomeAddress[] | undefined;
}

export function openDatabase(connectionString: string, options: DatabaseOptions): Database {
  const common: PoolConfig = {
    connectionString,
    types: parsers,
    connectionTimeoutMillis: 5_000,
    // A new connection plans each statement anew. With pg's 10 s an idle instance made one every eight seconds.
    idleTimeoutMillis: 60_000,
    keepAlive: true,
    application_name: "paybell",
  };
  const all: Pool[] = [];
  const open = (config: PoolConfig, settings: Readonly<Record<string, string>>): Pool => {
    const connections = new Pool({ ...common, ...config, onConnect: begin({ ...settings, ...idleInTransaction }) });
    connections.on("error", options.onIdleError);
    // A connection that breaks in somebody's hands between two statements tells nobody but itself, and an error that
    // nobody hears ends the process. Who holds it learns by the next statement.
    connections.on("connect", (client) => client.on("error", () => undefined));
    all.push(connections);
    return connections;
  };
  const forPeople = (max: number, at: PoolConfig = {}, settings: Readonly<Record<string, string>> = {}) =>
    open({ ...at, max, query_timeout: 35_000 }, { ...settings, statement_timeout: "30000" });
  // The server's own time-out does not help when the server has stopped answering.
  const forEngine = (max: number, at: PoolConfig = {}, settings: Readonly<Record<string, string>> = {}) =>
    open({ ...at, max, query_timeout: 15_000, pipeline: true }, { ...settings, ...engineSettings });
  const engineSettings = {
    statement_timeout: "10000",
    // Citus has to see the values to choose a plan.
    plan_cache_mode: options.homes === undefined ? "force_generic_plan" : "auto",
    ...Object.fromEntries(byKeyOnly.map((setting) => [setting, "off"])),
  };
  // A third for people, the rest for the engine: a heavy search cannot take the engine's connections.
  const peopleMax = Math.max(2, Math.floor(options.connectionsMax / 3));
  const engineMax = Math.max(4, options.connectionsMax - peopleMax);
  const pool = forPeople(peopleMax);
  const engine = forEngine(engineMax);
  const homeAt = ({ connectionString, schema }: HomeAddress): Home => {
    const settings = { search_path: `${schema}, public` };
    return {
      pool: forPeople(2, { connectionString }, settings),
      engine: forEngine(4, { connectionString }, settings),
      ddl: forPeople(1, {}, settings),
      handsRowsOn: false,
    };
  };
  const homes = options.homes?.map(homeAt) ?? [{ pool, engine, ddl: pool, handsRowsOn: true }];
  return {
    pool,
    engine,
    homes: new Homes(homes),
    async connectDirectly() {
      const client = new Client({ ...common, query_timeout: directAnswerMs });
      client.on("error", options.onIdleError);
      await client.connect();
      try {
        await begin({ statement_timeout: "5000" })(client);
        return client;
      } catch (error) {
        await client.end().catch(() => undefined);
        throw error;
      }
    },
    async close() {
      await Promise.all(all.map((connections) => connections.end()));
    },
  };
}

import { Client, type ClientBase, type ClientConfig, Pool, type PoolConfig, types } from "pg";
import { type Home, type HomeAddress, Homes } from "./homes.ts";

/**
 * The connections to PostgreSQL, by purpose. The engine's statements touch a few rows by key, whatever the statistics
 * say, so sequential scans are disabled on its connections. Measured: with statistics from an empty `pending`,
 * PostgreSQL chose a sequential scan inside a nested loop, and a DELETE of 500 rows took 30 s on a backlog of a
 * million. Each statement is planned once, at its first use: PostgreSQL would plan the first five uses per connection
 * again, 20 ms for a claim, and the plan it then keeps would depend on its estimates.
 */
export interface Database {
  /** For queries of people and administration. */
  readonly pool: Pool;
  /** For the engine's statements on shared tables: leases, shards, partners. */
  readonly engine: Pool;
  /** For tables that grow with partners' activity. On plain PostgreSQL the only home has the same connections. */
  readonly homes: Homes;
  /** Opens a dedicated connection, for LISTEN and the lease: it never queues behind other work. */
  connectDirectly(): Promise<Client>;
  close(): Promise<void>;
}

/** The lease, valid for 5 s, survives one timeout of a server that disappeared silently. */
const directAnswerMs = 3_000;

/** Its locks on files end with it: 25 s after its machine has disappeared silently, and not after two hours. */
const ofDirect = {
  statement_timeout: "5000",
  tcp_keepalives_idle: "10",
  tcp_keepalives_interval: "5",
  tcp_keepalives_count: "3",
  // An answer that nobody acknowledges is sent again for a quarter of an hour, without keepalives.
  tcp_user_timeout: "25000",
};

/** A process that stalls in a transaction holds locks that others wait for, such as a terminal's. */
const idleInTransaction = { idle_in_transaction_session_timeout: "30000" };

const byKeyOnly = ["enable_seqscan", "enable_hashjoin", "enable_mergejoin", "enable_bitmapscan", "enable_material"];

/**
 * Sets a connection's parameters by a statement when it opens: one round trip. As startup parameters PgBouncer would
 * refuse them, or drop them silently.
 */
function begin(settings: Readonly<Record<string, string>>): (client: ClientBase) => Promise<void> {
  const text = Object.entries(settings)
    .map(([name, value]) => `SET ${name} = ${value}`)
    .join("; ");
  return async (client) => {
    await client.query(text);
  };
}

// Reads int8 as a number, because our counts are far below 2^53. xid8 stays a string, because it is only passed back.
const readInt8 = (text: string) => Number(text);
const parsers: ClientConfig["types"] = {
  getTypeParser: ((oid: number, format?: "text" | "binary") =>
    oid === types.builtins.INT8 && format !== "binary"
      ? readInt8
      : types.getTypeParser(oid, format as "text")) as typeof types.getTypeParser,
};

export interface DatabaseOptions {
  readonly connectionsMax: number;
  /** Called for connections that broke while idle; they are replaced. */
  readonly onIdleError: (error: Error) => void;
  /** Of each connection; default: 5 s. A process that stands still for as long takes a server for dead that answered. */
  readonly connectTimeoutMs?: number;
  /** With Citus, the result of `findHomes`. */
  readonly homes?: readonly HomeAddress[] | undefined;
}

export function openDatabase(connectionString: string, options: DatabaseOptions): Database {
  const common: PoolConfig = {
    connectionString,
    types: parsers,
    connectionTimeoutMillis: options.connectTimeoutMs ?? 5_000,
    // A new connection plans each statement again. With pg's default of 10 s an idle instance opened one every eight
    // seconds.
    idleTimeoutMillis: 60_000,
    keepAlive: true,
    application_name: "paybell",
  };
  const all: Pool[] = [];
  const open = (config: PoolConfig, settings: Readonly<Record<string, string>>): Pool => {
    const connections = new Pool({ ...common, ...config, onConnect: begin({ ...settings, ...idleInTransaction }) });
    connections.on("error", options.onIdleError);
    // A connection that breaks between two statements of its user only emits an event, and an error event without a
    // listener would end the process. The user learns of it by the next statement.
    connections.on("connect", (client) => client.on("error", () => undefined));
    all.push(connections);
    return connections;
  };
  const forPeople = (max: number, at: PoolConfig = {}, settings: Readonly<Record<string, string>> = {}) =>
    open({ ...at, max, query_timeout: 35_000 }, { ...settings, statement_timeout: "30000" });
  // The server's own timeout does not help if the server no longer answers.
  const forEngine = (max: number, at: PoolConfig = {}, settings: Readonly<Record<string, string>> = {}) =>
    open({ ...at, max, query_timeout: 15_000, pipeline: true }, { ...settings, ...engineSettings });
  const engineSettings = {
    statement_timeout: "10000",
    // Citus has to see the values to choose a plan.
    plan_cache_mode: options.homes === undefined ? "force_generic_plan" : "auto",
    ...Object.fromEntries(byKeyOnly.map((setting) => [setting, "off"])),
    // A sequential scan that cannot be avoided has a very high cost now. PostgreSQL would compile such a statement each
    // time: measured, 4 s for the map of shards on a busy machine.
    jit: "off",
  };
  // A third for people, the rest for the engine: a heavy search cannot occupy the engine's connections.
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
        await begin(ofDirect)(client);
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

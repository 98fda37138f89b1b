import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { TLSSocket } from "node:tls";
import { Client } from "pg";
import { generate } from "selfsigned";
import { expect, onTestFinished, test, vi } from "vitest";
import { createDatabase, databaseUrl } from "../../../../../test/support/database.ts";
import { lockWaits } from "../../../../../test/support/locks.ts";
import { queryAlongIndexes } from "./along-indexes.ts";
import { openDatabase } from "./database.ts";
import { failureKindOf } from "./transaction.ts";

const options = { connectionsMax: 6, onIdleError: () => undefined };

test("the engine never scans a whole table, people may query for longer, and no transaction stays idle", async () => {
  const database = await createDatabase();
  const { pool, engine, connectDirectly, close } = openDatabase(database.url, options);
  const shown = `SELECT string_agg(name || '=' || setting, ' ' ORDER BY name) AS all
    FROM pg_settings WHERE name = ANY ($1)`;
  const names = [
    "enable_bitmapscan",
    "enable_hashjoin",
    "enable_material",
    "enable_mergejoin",
    "enable_seqscan",
    "idle_in_transaction_session_timeout",
    "jit",
    "plan_cache_mode",
    "statement_timeout",
  ];
  // The default of a server that was built with LLVM.
  await pool.query("DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET jit = on', current_database()); END $$");
  const ofEngine = await engine.query(shown, [names]);
  expect(ofEngine.rows[0].all).toBe(
    "enable_bitmapscan=off enable_hashjoin=off enable_material=off enable_mergejoin=off enable_seqscan=off " +
      "idle_in_transaction_session_timeout=30000 jit=off plan_cache_mode=force_generic_plan statement_timeout=10000",
  );
  const ofPeople = await pool.query(shown, [
    ["enable_seqscan", "idle_in_transaction_session_timeout", "statement_timeout"],
  ]);
  expect(ofPeople.rows[0].all).toBe(
    "enable_seqscan=on idle_in_transaction_session_timeout=30000 statement_timeout=30000",
  );
  // All together open no more than they may, and give up on a server that no longer answers.
  const limits = [pool, engine].map(({ options: { max, query_timeout: answerMs } }) => [max, answerMs]);
  expect(limits).toEqual([
    [2, 35_000],
    [4, 15_000],
  ]);
  const query = vi.spyOn(Client.prototype, "query");
  const direct = await connectDirectly();
  expect((await direct.query("SHOW statement_timeout")).rows).toEqual([{ statement_timeout: "5s" }]);
  // A machine that is gone without a word leaves its locks after 25 s, not after two hours: over TCP, which no test has.
  const keptAlive = "tcp_keepalives_idle = 10; SET tcp_keepalives_interval = 5; SET tcp_keepalives_count = 3";
  expect(query).toHaveBeenCalledWith(expect.stringContaining(`${keptAlive}; SET tcp_user_timeout = 25000`));
  query.mockRestore();
  await direct.end();
  await close();
  await database.drop();
});

test("a home on Citus has connections of its own: they name its schema first, and see a statement's values", async () => {
  const database = await createDatabase();
  const address = { connectionString: database.url, schema: "home_7" };
  const { homes, close } = openDatabase(database.url, { ...options, homes: [address] });
  const shown = "SELECT current_setting('search_path') AS path, current_setting('plan_cache_mode') AS plans";
  const all = homes.all.flatMap(({ pool, engine, ddl }) => [pool, engine, ddl]);
  const answers = await Promise.all(all.map((connections) => connections.query(shown)));
  expect(answers.flatMap(({ rows }) => rows)).toEqual(
    Array.from({ length: 3 }, () => ({ path: "home_7, public", plans: "auto" })),
  );
  expect(homes.all.map(({ handsRowsOn }) => handsRowsOn)).toEqual([false]);
  await close();
  await database.drop();
});

/** Ends once the session does: a process of its own, for one that may not do anything else meanwhile. */
const untilGone = `
  import { Client } from "pg";
  const [url, pid] = process.argv.slice(1);
  const client = new Client({ connectionString: url });
  await client.connect();
  while ((await client.query("SELECT FROM pg_stat_activity WHERE pid = $1", [pid])).rowCount > 0);
  await client.end();
`;

test("a process that stalled in a transaction finds its locks gone, and repeats all of it", async () => {
  const database = await createDatabase();
  const { engine, close } = openDatabase(database.url, options);
  const client = await engine.connect();
  const { rows } = await client.query<{ pid: number }>("SELECT pg_backend_pid() AS pid");
  await client.query("SET idle_in_transaction_session_timeout = 50");
  await client.query("BEGIN");
  // The whole thread stalls, so it has not noticed the end of its connection when it continues.
  const watching = ["--input-type=module", "--eval", untilGone, database.url, String(rows[0]?.pid)];
  execFileSync(process.execPath, watching, { cwd: import.meta.dirname });
  const broken = await client.query("COMMIT").catch((error: unknown) => error);
  expect(failureKindOf(broken)).toBe("connection");
  client.release(true);
  // Over TCP the statement is sent before the end of the connection is read, and gets PostgreSQL's reason.
  const told = await engine
    .query("DO $$ BEGIN RAISE 'stood still' USING ERRCODE = 'idle_in_transaction_session_timeout'; END $$")
    .catch((error: unknown) => error);
  expect(failureKindOf(told)).toBe("connection");
  await close();
  await database.drop();
});

test("a server that admits no new connections now is unavailable, and no mistake of ours", async () => {
  const database = await createDatabase();
  const missing = databaseUrl(database.url, "a_database_that_is_being_restored");
  const unknown = database.url.replace(/^(postgres:\/\/)[^/@]*@?/, "$1a_role_that_may_not_sign_in:wrong@");
  for (const [url, code] of [
    [missing, "3D000"],
    [unknown, "28P01"],
  ] as const) {
    const { engine, close } = openDatabase(url, options);
    const refused = await engine.query("SELECT").catch((error: unknown) => error);
    expect(refused).toMatchObject({ code });
    expect(failureKindOf(refused)).toBe("connection");
    await close();
  }
  await database.drop();
});

test.each([
  ["speaks TLS with a certificate that is not trusted", "S"],
  ["speaks no TLS", "N"],
  ["cannot begin a session", "E"],
])("a server that %s, such as another one after a failover, is unavailable", async (_, answer) => {
  const { private: key, cert } = await generate([{ name: "commonName", value: "localhost" }], { keyType: "ec" });
  const server = createServer((socket) => {
    socket
      .on("error", () => undefined)
      .once("data", () => {
        socket.write(answer);
        if (answer === "S") new TLSSocket(socket, { isServer: true, key, cert }).on("error", () => undefined);
      });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const { engine, close } = openDatabase(`postgres://someone@127.0.0.1:${port}/one?sslmode=verify-full`, options);
  const refused = await engine.query("SELECT").catch((error: unknown) => error);
  expect([failureKindOf(refused), refused]).toEqual(["connection", expect.any(Error)]);
  await close();
  await new Promise((resolve) => server.close(resolve));
});

test("slow searches leave connections to the actions of people, and one that waits in vain keeps no turn", async () => {
  const database = await createDatabase();
  const { pool, engine, close } = openDatabase(database.url, options);
  const gate = await engine.connect();
  await gate.query("SELECT pg_advisory_lock(1)");
  const searches = [1, 2].map(() => queryAlongIndexes(pool, "SELECT pg_advisory_xact_lock(1)", []));
  await lockWaits(gate);
  await pool.query("SELECT");
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  onTestFinished(() => void vi.useRealTimers());
  const inVain = queryAlongIndexes(pool, "SELECT", []);
  vi.advanceTimersByTime(5_000);
  await expect(inVain).rejects.toMatchObject({ code: "unavailable" });
  vi.useRealTimers();
  await gate.query("SELECT pg_advisory_unlock(1)");
  gate.release();
  await Promise.all(searches);
  await expect(queryAlongIndexes(pool, "SELECT 1 / 0", [])).rejects.toThrow("division by zero");
  expect(await queryAlongIndexes(pool, "SELECT 1 AS one", [])).toEqual([{ one: 1 }]);
  await close();
  await database.drop();
});

/** The startup parameters of a connection, as alternating names and values. */
async function startupOf(connect: (url: string) => Promise<unknown>): Promise<string[]> {
  const { promise, resolve } = Promise.withResolvers<Buffer>();
  const server = createServer((socket) => {
    socket.on("error", () => undefined);
    socket.once("data", (said) => {
      resolve(Buffer.from(said));
      socket.destroy();
    });
  });
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("no port");
  await expect(connect(`postgres://someone@127.0.0.1:${address.port}/paybell`)).rejects.toThrow();
  await new Promise((closed) => server.close(closed));
  return (await promise).subarray(8).toString().split("\0").filter(Boolean);
}

test.each(["pool", "engine", "direct"] as const)(
  "the %s connection begins with nothing that PgBouncer refuses",
  async (which) => {
    const said = await startupOf(async (url) => {
      const { pool, engine, connectDirectly, close } = openDatabase(url, options);
      const connects = { pool: () => pool.connect(), engine: () => engine.connect(), direct: connectDirectly };
      await connects[which]().finally(close);
    });
    const names = said.filter((_, index) => index % 2 === 0);
    expect(names).toContain("user");
    // These, and no others: https://www.pgbouncer.org/config.html#ignore_startup_parameters
    const tracked = ["client_encoding", "datestyle", "timezone", "standard_conforming_strings", "application_name"];
    expect(names.filter((name) => ![...tracked, "user", "database"].includes(name.toLowerCase()))).toEqual([]);
  },
);

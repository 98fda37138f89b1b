import { randomUUID } from "node:crypto";
import { cp, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { Client, Pool } from "pg";
import { afterEach, beforeEach, expect, onTestFinished, test } from "vitest";
import { openTestDatabase } from "../../../../../test/support/connections.ts";
import { createDatabase, type TestDatabase, withAdmin } from "../../../../../test/support/database.ts";
import { lockWaits, loseDeadlock } from "../../../../../test/support/locks.ts";
import { newId } from "../../ids.ts";
import { grantToService, narrowedRights, readExcessRights } from "../database/service-role.ts";
import { insertLease, insertPartner, sampleInit } from "../rows.fixture.ts";
import { PostgresTransactions } from "../transactions/transactions.ts";
import {
  IncompatibleSchema,
  inspectSchema,
  migrate,
  OlderInstancesRunning,
  prepareSchema,
  statementsOf,
} from "./migrate.ts";

let database: TestDatabase;
let client: Client;
let path: string;
let folder: URL;

beforeEach(async () => {
  database = await createDatabase();
  client = new Client({ connectionString: database.url });
  await client.connect();
  path = await mkdtemp(join(tmpdir(), "paybell-migrations-"));
  await cp(join(import.meta.dirname, "migrations"), path, { recursive: true });
  folder = pathToFileURL(`${path}/`);
});
afterEach(async () => {
  await client.end();
  await database.drop();
  await rm(path, { recursive: true, force: true });
});

const write = (name: string, sql: string) => writeFile(join(path, name), sql);
const hasTable = async (name: string) =>
  (await client.query("SELECT FROM pg_tables WHERE tablename = $1", [name])).rowCount === 1;

async function holder(host: string, beatAgoS: number): Promise<string> {
  const id = newId<"lease">();
  await client.query(
    `INSERT INTO leases (id, kind, beaten_at, host, version)
     VALUES ($1, 'api', now() - $3 * interval '1 second', $2, '0')`,
    [id, host, beatAgoS],
  );
  return id;
}

test("a migration is applied beside older instances, and once", async () => {
  await holder("shop-1", 1);
  await write("9001_more.sql", "CREATE TABLE more (id integer);");
  expect(await migrate(database.url, folder)).toEqual(["9001_more.sql"]);
  expect(await migrate(database.url, folder)).toEqual([]);
});

test("instances that start together apply a migration once", async () => {
  await write("9001_more.sql", "CREATE TABLE more (id integer);");
  await client.query("BEGIN; LOCK TABLE migrations");
  const both = Promise.all([migrate(database.url, folder), migrate(database.url, folder)]);
  // One waits for the table, the other for the first.
  await withAdmin(database.url, (admin) => lockWaits(admin, 2));
  await client.query("COMMIT");
  expect((await both).flat()).toEqual(["9001_more.sql"]);
});

/** The database's time, for all of its connections: a lease stays as old as it is, however long a test takes. */
async function stopTime(): Promise<void> {
  await client.query(`
    CREATE FUNCTION public.now() RETURNS timestamptz LANGUAGE sql
      AS $$ SELECT '2026-01-31T00:00:00Z'::timestamptz $$;
    DO $$ BEGIN
      EXECUTE format('ALTER DATABASE %I SET search_path = public, pg_catalog', current_database());
    END $$;
    SET search_path = public, pg_catalog`);
}

test("a breaking one waits for the last older instance: refused by name, with nothing of it done", async () => {
  await stopTime();
  const [one, other] = [await holder("shop-1", 1), await holder("shop-2", 7)];
  await holder("long-dead", 9);
  await write("9001_more.sql", "CREATE TABLE more (id integer);");
  await write("9002_other.sql", "--! breaking: what it drops is read by the version before.\nDROP TABLE more;");
  const refused = await migrate(database.url, folder).catch((error: unknown) => error);
  expect(refused).toBeInstanceOf(OlderInstancesRunning);
  expect(String(refused)).toMatch(/9002_other.sql is breaking, .* shop-1, shop-2\.$/);
  expect(await hasTable("more")).toBe(true);

  await client.query("DELETE FROM leases WHERE id IN ($1, $2)", [one, other]);
  expect(await migrate(database.url, folder)).toEqual(["9002_other.sql"]);
  expect(await hasTable("more")).toBe(false);
});

test("none waits long for a lock: everybody would wait behind it", async () => {
  await write("9001_waits.sql", "CREATE TABLE seen AS SELECT current_setting('lock_timeout') AS lock_timeout;");
  await migrate(database.url, folder);
  expect((await client.query("SELECT lock_timeout FROM seen")).rows).toEqual([{ lock_timeout: "5s" }]);
});

test("one that loses a deadlock with an instance that runs is applied again", async () => {
  await client.query("CREATE TABLE one AS SELECT 0 AS n; CREATE TABLE other AS SELECT 0 AS n");
  // The gate of this test is no lock that may be waited for too long.
  const both = "SET LOCAL lock_timeout = 0;\nUPDATE one SET n = n + 1;\nUPDATE other SET n = n + 1;";
  await write("9001_both.sql", both);
  const pool = new Pool({ connectionString: database.url });
  const locks = ["UPDATE other SET n = n + 10", "UPDATE one SET n = n + 10"] as const;
  const migrating = loseDeadlock(pool, () => migrate(database.url, folder), { table: "one", locks });
  const applied = await migrating.finally(() => pool.end());
  expect(applied).toEqual(["9001_both.sql"]);
  expect((await client.query("SELECT one.n AS one, other.n AS other FROM one, other")).rows).toEqual([
    { one: 11, other: 11 },
  ]);
});

test("on an empty database nobody is in the way", async () => {
  await client.query("DROP SCHEMA public CASCADE; CREATE SCHEMA public");
  await write("0000_first.sql", "--! breaking: the first.\nCREATE TABLE first (id integer);");
  expect((await migrate(database.url, folder))[0]).toBe("0000_first.sql");
});

test("a migration that fails leaves nothing behind", async () => {
  await write("9001_broken.sql", "CREATE TABLE more (id integer); SELECT nothing;");
  await expect(migrate(database.url, folder)).rejects.toThrow("9001_broken.sql failed and was rolled back");
  expect(await hasTable("more")).toBe(false);
});

test("a version that is put back runs on the schema of a newer one, unless that has a breaking migration", async () => {
  const newer = new URL(`${pathToFileURL(await mkdtemp(join(tmpdir(), "paybell-migrations-"))).href}/`);
  onTestFinished(() => rm(newer, { recursive: true }));
  await cp(folder, newer, { recursive: true });
  await writeFile(new URL("9001_more.sql", newer), "CREATE TABLE more (id integer);");
  await migrate(database.url, newer);
  expect(await migrate(database.url, folder)).toEqual([]);
  expect(await inspectSchema(client)).toMatchObject({ missing: 0, newer: 1 });

  await writeFile(new URL("9002_other.sql", newer), "--! breaking: others read what it drops.\nDROP TABLE more;");
  await migrate(database.url, newer);
  await expect(migrate(database.url, folder)).rejects.toThrow(
    "the breaking migration 9002_other.sql of a newer version",
  );
  expect(await inspectSchema(client)).toBeInstanceOf(IncompatibleSchema);
});

test("a connection that is lost during a migration fails it with the reason, and the process goes on", async () => {
  await write("9001_lost.sql", "SELECT pg_terminate_backend(pg_backend_pid());");
  const failed = await migrate(database.url, folder).catch((error: unknown) => error);
  expect(String(failed)).toBe(
    "Error: Migration 9001_lost.sql failed and was rolled back: terminating connection due to administrator command.",
  );
});

test("a database of an unreleased build, or of another program, is refused with an error that says so", async () => {
  await client.query("UPDATE migrations SET sha256 = 'of another file' WHERE number = 1");
  await expect(migrate(database.url, folder)).rejects.toMatchObject({
    code: "incompatible_schema",
    message: expect.stringContaining("0001_baseline.sql has other content"),
    remedy: expect.stringContaining("Use a new database"),
  });
  // Earlier builds stored no checksums.
  await client.query("ALTER TABLE migrations DROP COLUMN sha256");
  await expect(migrate(database.url, folder)).rejects.toThrow("never released");
  await client.query("DROP TABLE migrations; CREATE TABLE migrations (id text); INSERT INTO migrations VALUES ('x')");
  await expect(migrate(database.url, folder)).rejects.toThrow("another program's");
});

test("every migration has a number of its own", async () => {
  const names = (await readdir(folder)).filter((name) => name.endsWith(".sql"));
  expect(names.length).toBeGreaterThan(0);
  const numbers = names.map((name) => name.slice(0, 4));
  expect(numbers.filter((number, at) => numbers.indexOf(number) !== at)).toEqual([]);
});

test("every migration is sent one statement at a time: Citus forwards no more to its nodes at once", async () => {
  await client.query("DROP SCHEMA public CASCADE; CREATE SCHEMA public");
  for (const name of (await readdir(path)).filter((one) => one.endsWith(".sql")).sort()) {
    for (const text of statementsOf(await readFile(join(path, name), "utf8"))) {
      // This protocol takes a single statement. The types of pg do not know the option.
      const alone = { text, queryMode: "extended" };
      await client.query(alone).catch((error: Error) => expect.fail(`${name}: ${error.message}\n${text}`));
    }
  }
});

test("a migration of homes comes apart into its statements, and a function's body stays whole", () => {
  const body = "CREATE FUNCTION f() RETURNS void LANGUAGE plpgsql AS $$\nBEGIN\n  PERFORM 1;\nEND $$;";
  expect(statementsOf(`-- Why.\nCREATE TABLE a ();\n\n${body}\nDROP TABLE a;\n`)).toEqual([
    "-- Why.\nCREATE TABLE a ();",
    body,
    "DROP TABLE a;",
  ]);
});

const ownerUrl = () => database.url;
const serviceUrl = () => database.serviceUrl;

test("a service's role reads and writes rows, and changes neither the schema nor the audit", async () => {
  expect(await prepareSchema({ databaseUrl: serviceUrl(), ownerUrl: ownerUrl(), auditDays: 91 })).toEqual([]);
  expect(await prepareSchema({ databaseUrl: serviceUrl(), auditDays: 90 })).toEqual([]);
  await withAdmin(serviceUrl(), async (service) => {
    await service.query("DELETE FROM partners");
    await service.query("SELECT seq FROM audit");
    expect((await service.query("SELECT days FROM audit_start")).rows).toEqual([{ days: 91 }]);
    for (const statement of [
      "CREATE TABLE mine ()",
      "ALTER TABLE audit DISABLE TRIGGER ALL",
      "UPDATE audit SET actor = ''",
      "DELETE FROM audit",
      "TRUNCATE audit",
      "DROP TABLE audit",
      "DELETE FROM migrations",
      "UPDATE notifications SET content = '{}'",
      "UPDATE attempts SET http_status = 200",
      "UPDATE proofs SET attempts = 1",
      "UPDATE operators SET role = 'admin'",
      "UPDATE operators SET expires_at = now()",
      "UPDATE partner_keys SET scopes = NULL",
      "UPDATE partner_keys SET partner_id = gen_random_uuid()",
      "DELETE FROM row_seals",
      "UPDATE row_seals SET seq = 1",
      "INSERT INTO sealing (seq) VALUES (1)",
      "UPDATE sealing SET sealed_at = 'infinity'",
      "DELETE FROM sealing",
      "DELETE FROM shards",
      "DELETE FROM restores",
      "TRUNCATE pending",
    ]) {
      await expect(service.query(statement), statement).rejects.toMatchObject({ code: "42501" });
    }
    const partition = "SELECT create_history_partition('notifications', $1, gen_random_uuid(), gen_random_uuid())";
    await expect(service.query(partition, ["audit"])).rejects.toThrow("not a partition of history");
    await expect(service.query("SELECT drop_history_partition('audit', 'audit')")).rejects.toThrow("not a partition");
  });
});

test("a service's role is refused every right that it does not need, column by column", async () => {
  await prepareSchema({ databaseUrl: serviceUrl(), ownerUrl: ownerUrl() });
  const { rows } = await client.query<{ name: string; column: string }>(
    `SELECT c.relname AS name, a.attname AS column FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
     WHERE c.relname = ANY ($1) AND c.relnamespace = current_schema()::regnamespace
       AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = '' ORDER BY 1, 2`,
    [Object.keys(narrowedRights)],
  );
  await withAdmin(serviceUrl(), async (service) => {
    const refused = async (statement: string) =>
      await expect(service.query(statement), statement).rejects.toMatchObject({ code: "42501" });
    for (const [table, { rights }] of Object.entries(narrowedRights)) {
      await refused(`TRUNCATE ${table}`);
      if (!rights.includes("DELETE")) await refused(`DELETE FROM ${table}`);
      if (!rights.includes("INSERT")) await refused(`INSERT INTO ${table} DEFAULT VALUES`);
    }
    for (const { name, column } of rows) {
      const { rights = [], columns = [] } = narrowedRights[name] ?? {};
      const update = `UPDATE ${name} SET ${column} = NULL WHERE false`;
      if (rights.includes("UPDATE") || columns.includes(column)) await service.query(update);
      else await refused(update);
    }
  });
});

test("a right that no statement of the service needs is taken back", async () => {
  const [{ role }] = await withAdmin(serviceUrl(), async (service) => {
    return (await service.query<{ role: string }>("SELECT current_user AS role")).rows as [{ role: string }];
  });
  const excess = () => withAdmin(serviceUrl(), readExcessRights);
  await client.query(`GRANT UPDATE ON notifications TO ${role}; GRANT UPDATE (role) ON operators TO ${role}`);
  expect(await excess()).toEqual(["notifications", "operators"]);
  await prepareSchema({ databaseUrl: serviceUrl(), ownerUrl: ownerUrl() });
  expect(await excess()).toEqual([]);
  const { rows } = await client.query(
    `SELECT has_table_privilege($1, 'notifications', 'UPDATE') AS notifications,
       has_column_privilege($1, 'operators', 'role', 'UPDATE') AS role,
       has_column_privilege($1, 'operators', 'revoked_at', 'UPDATE') AS revoked`,
    [role],
  );
  expect(rows).toEqual([{ notifications: false, role: false, revoked: true }]);
});

test("another program's table and function in the schema are left alone by an owner who may not grant rights on it", async () => {
  const [{ role }] = await withAdmin(serviceUrl(), async (service) => {
    return (await service.query<{ role: string }>("SELECT current_user AS role")).rows as [{ role: string }];
  });
  const owner = `owner_${randomUUID().replaceAll("-", "")}`;
  await client.query(`
    CREATE ROLE ${owner};
    DO $$ DECLARE one regclass; BEGIN
      FOR one IN SELECT oid FROM pg_class WHERE relkind IN ('r', 'p') AND relnamespace = current_schema()::regnamespace LOOP
        EXECUTE format('ALTER TABLE %s OWNER TO ${owner}', one);
      END LOOP;
    END $$;
    CREATE TABLE report ();
    CREATE FUNCTION reported() RETURNS integer LANGUAGE sql SECURITY DEFINER RETURN 1;
    REVOKE EXECUTE ON FUNCTION reported FROM PUBLIC;
    SET ROLE ${owner}`);
  await grantToService(client, role);
  await client.query(
    `RESET ROLE; DROP TABLE report; DROP FUNCTION reported; REASSIGN OWNED BY ${owner} TO CURRENT_USER; DROP ROLE ${owner}`,
  );
});

test("where columns cannot be granted, as on old releases of Citus, the service's role updates the table", async () => {
  const [{ role }] = await withAdmin(serviceUrl(), async (service) => {
    return (await service.query<{ role: string }>("SELECT current_user AS role")).rows as [{ role: string }];
  });
  await client.query(`REVOKE ALL ON partner_keys, operators FROM ${role}`);
  const citus = new Proxy(client, {
    get: (target, name: keyof Client) =>
      name !== "query"
        ? target[name]
        : async (text: string, values?: unknown[]) => {
            if (!/GRANT .*UPDATE \(.* ON partner_keys/.test(text)) return await target.query(text, values);
            throw Object.assign(new Error("grant/revoke on column list is currently unsupported"), { code: "0A000" });
          },
  });
  await grantToService(citus, role);
  const { rows } = await client.query(
    `SELECT has_table_privilege($1, 'partner_keys', 'UPDATE') AS keys, has_table_privilege($1, 'operators', 'UPDATE')
       AS operators, has_column_privilege($1, 'operators', 'revoked_at', 'UPDATE') AS revoked`,
    [role],
  );
  expect(rows).toEqual([{ keys: true, operators: false, revoked: true }]);
  // `paybell check` warns of it.
  expect(await withAdmin(serviceUrl(), readExcessRights)).toEqual(["partner_keys"]);
});

test("a PostgreSQL that is too old is refused before anything is changed", async () => {
  await client.query("DROP SCHEMA public CASCADE; CREATE SCHEMA public");
  // A server cannot lie about its version, so a function of the database answers in place of PostgreSQL's.
  await client.query(`
    CREATE FUNCTION current_setting(name text) RETURNS text LANGUAGE sql AS $$
      SELECT CASE name WHEN 'server_version_num' THEN '140012' ELSE '14.12' END $$`);
  await client.query(`
    DO $$ BEGIN
      EXECUTE format('ALTER DATABASE %I SET search_path = public, pg_catalog', current_database());
    END $$`);
  await expect(migrate(database.url)).rejects.toMatchObject({
    code: "postgres_too_old",
    message: "This is PostgreSQL 14.12, which is too old.",
    remedy: "Use PostgreSQL 15 or later.",
  });
  expect(await hasTable("migrations")).toBe(false);
});

test("a service whose role may not bring the schema up to date says who can", async () => {
  await client.query("DELETE FROM migrations WHERE number = (SELECT max(number) FROM migrations)");
  await expect(prepareSchema({ databaseUrl: serviceUrl() })).rejects.toMatchObject({
    code: "migrations_missing",
    remedy: expect.stringContaining("paybell migrate"),
  });
});

const reqId = randomUUID();

const connections = await openTestDatabase({ connectionsMax: 4 });
const transactions = new PostgresTransactions(connections);
const partnerId = await insertPartner(connections.pool);
const leaseId = await insertLease(connections.pool);
const init = sampleInit(partnerId, leaseId, { reqId });
await transactions.begin(init);
const found = await transactions.find(partnerId, init.id);
if (found === undefined) throw new Error("what was begun is not found");
const known = found;

const calls: readonly [string, () => Promise<unknown>][] = [
  ["find", () => transactions.find(partnerId, known.id)],
  ["findByReqId", () => transactions.findByReqId(partnerId, reqId)],
  ["chain", () => transactions.chain(known)],
  ["findReported", () => transactions.findReported(partnerId, ["x-1"])],
  ["takeOver", () => transactions.takeOver(leaseId, 10)],
];

/** Concurrent calls, so that every connection has prepared the statement. */
const onEveryConnection = (call: () => Promise<unknown>) => Promise.all(Array.from({ length: 8 }, call));

test.each(calls)("%s goes on when a later version gives its table another column", async (name, call) => {
  const before = await onEveryConnection(call);
  await connections.pool.query(`ALTER TABLE transactions ADD COLUMN of_${name.toLowerCase()} text`);
  expect(await onEveryConnection(call)).toEqual(before);
});

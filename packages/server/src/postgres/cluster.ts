import { randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { chown, mkdir, mkdtemp, open, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Client, DatabaseError } from "pg";
import { z } from "zod";
import { type Binaries, majorOf } from "./binaries.ts";
import { type DataLocation, socketPort } from "./location.ts";
import { runTool } from "./process.ts";
import { dataRefused, explainFailedStart, otherMajorVersion, PostgresStartError } from "./start-error.ts";

/** The one database of the cluster that holds anything. */
const databaseName = "paybell";

const draftPrefix = "postgres.init-";

/**
 * Makes the data directory when there is none. It is made in a folder beside and renamed when complete and on disk, so
 * that a crash in the middle leaves no half cluster; what such a crash left is removed.
 *
 * @param password of the superuser, when it is made
 */
export async function ensureCluster(
  location: DataLocation,
  binaries: Binaries,
  password: string,
  durable: boolean,
): Promise<void> {
  const entries = await readdir(location.dataDirectory).catch(absentAsEmpty);
  if (entries.includes("PG_VERSION")) {
    const found = (await readFile(join(location.dataDirectory, "PG_VERSION"), "utf8")).trim();
    if (found !== majorOf(binaries)) throw otherMajorVersion(location.dataDirectory, found, majorOf(binaries));
    return;
  }
  if (entries.length > 0) throw dataRefused(location.dataDirectory, "it holds files, but PG_VERSION is missing");
  for (const name of await readdir(location.base)) {
    // The initdb of a killed service may still be writing there; what it puts back is removed at the next start.
    if (name.startsWith(draftPrefix)) await removeTree(join(location.base, name)).catch(() => undefined);
  }
  const draft = await mkdtemp(join(location.base, draftPrefix));
  try {
    const [data, passwordFile] = [join(draft, "data"), join(draft, "password")];
    await mkdir(data, { mode: 0o700 });
    await writeFile(passwordFile, password, { mode: 0o600 });
    if (location.account !== undefined) {
      for (const path of [draft, data, passwordFile]) await chown(path, location.account.uid, location.account.gid);
    }
    const result = await runTool(
      join(binaries.native, "bin", "initdb"),
      initdbArguments(data, passwordFile, durable),
      location.account,
    );
    if (result.exitCode !== 0) throw await explainFailedStart({ output: result.output, dataDirectory: location.base });
    await rename(data, location.dataDirectory);
    const base = await open(location.base, "r");
    await base.sync().finally(() => base.close());
  } finally {
    await removeTree(draft);
  }
}

function initdbArguments(directory: string, passwordFile: string, durable: boolean): string[] {
  return [
    ...["-D", directory, "-U", databaseRoles.superuser, "--encoding=UTF8", "--no-instructions"],
    // We remove what it leaves, after a look at the disk that it filled.
    "--no-clean",
    // Order by code point and Unicode's letters, the same on every system: no index breaks when the system's libc
    // changes.
    ...["--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"],
    // Its folder of mode 0700 protects the socket from other accounts, a password from other processes of the same one.
    // There is no TCP.
    ...["--auth-local=scram-sha-256", "--auth-host=reject", `--pwfile=${passwordFile}`],
    // initdb writes without fsync and syncs everything once, at its end.
    ...(durable ? [] : ["--no-sync"]),
  ];
}

function removeTree(path: string): Promise<void> {
  return rm(path, { recursive: true, force: true, maxRetries: 5, retryDelay: 50 });
}

function absentAsEmpty(error: unknown): string[] {
  if (error instanceof Error && "code" in error && error.code === "ENOENT") return [];
  throw error;
}

/** The roles of the embedded PostgreSQL, least privileges last. */
const databaseRoles = {
  /** Makes the others, and the database. The service never logs in as it. */
  superuser: "postgres",
  /** Owns the schema: migrations run as it. */
  owner: "paybell_owner",
  /** Reads and writes rows. */
  service: "paybell",
} as const;

type RoleKey = keyof typeof databaseRoles;

const passwordsShape = z.object({ superuser: z.string(), owner: z.string(), service: z.string() });
export type Passwords = Readonly<z.infer<typeof passwordsShape>>;

const fileName = "postgres-passwords.json";

/**
 * The passwords of the roles, in a file of the home that only its owner can read. Created before the data, so that
 * there are no data without a password.
 *
 * @throws PostgresStartError `passwords_missing` if there are data and no passwords
 */
export async function keptPasswords(home: string, dataDirectory: string): Promise<Passwords> {
  const path = join(home, fileName);
  const kept = await readFile(path, "utf8").catch(() => undefined);
  if (kept !== undefined) return readPasswords(kept, path);
  if (existsSync(join(dataDirectory, "PG_VERSION"))) throw passwordsMissing(path, "is missing");
  const password = () => randomBytes(32).toString("base64url");
  const passwords: Passwords = { superuser: password(), owner: password(), service: password() };
  const draft = `${path}.draft`;
  await writeFile(draft, `${JSON.stringify(passwords, null, 2)}\n`, { mode: 0o600, flush: true });
  await rename(draft, path);
  return passwords;
}

function readPasswords(text: string, path: string): Passwords {
  try {
    return passwordsShape.parse(JSON.parse(text));
  } catch {
    // JSON.parse quotes what it read: a password must not get into an error.
    throw passwordsMissing(path, "cannot be read");
  }
}

function passwordsMissing(path: string, what: string): PostgresStartError {
  return new PostgresStartError(
    "passwords_missing",
    `PostgreSQL has data, and ${path}, with the passwords of its roles, ${what}.`,
    "Restore that file from a backup of PAYBELL_HOME: it belongs to the data.",
  );
}

/** The form of a connection string that `pg` understands for a unix socket. */
export function connectionString(
  socketDirectory: string,
  role: RoleKey,
  passwords: Passwords,
  database = databaseName,
): string {
  const query = new URLSearchParams({ host: socketDirectory, port: String(socketPort), sslmode: "disable" });
  return `postgres://${databaseRoles[role]}:${passwords[role]}@/${database}?${query}`;
}

/**
 * initdb makes neither our roles nor our database: the first start does, and any start after a crash in between. The
 * owner may do what it likes in that one database. The service gets its rights on tables with the schema.
 *
 * @returns the server's version, such as `18.4`
 * @throws PostgresStartError `passwords_missing` when the server has other passwords than the home
 */
export async function ensureDatabase(socketDirectory: string, passwords: Passwords, home: string): Promise<string> {
  const { owner, service } = databaseRoles;
  const client = new Client({
    connectionString: connectionString(socketDirectory, "superuser", passwords, "postgres"),
    connectionTimeoutMillis: 5_000,
    query_timeout: 30_000,
  });
  // A server that dies while we hold a connection reports it here as well; the query in flight rejects on its own.
  client.on("error", () => undefined);
  try {
    await client.connect();
    for (const role of ["owner", "service"] as const) {
      const name = databaseRoles[role];
      const { rowCount } = await client.query("SELECT FROM pg_roles WHERE rolname = $1", [name]);
      if (rowCount === 0) await client.query(`CREATE ROLE ${name} LOGIN PASSWORD '${passwords[role]}'`);
    }
    const { rowCount } = await client.query("SELECT FROM pg_database WHERE datname = $1", [databaseName]);
    if (rowCount === 0) await client.query(`CREATE DATABASE ${databaseName} OWNER ${owner}`);
    await client.query(`
      REVOKE ALL ON DATABASE ${databaseName}, postgres, template1 FROM PUBLIC;
      GRANT CONNECT ON DATABASE ${databaseName} TO ${service}`);
    const { rows } = await client.query<{ server_version: string }>("SHOW server_version");
    return rows[0]?.server_version ?? "";
  } catch (error) {
    if (error instanceof DatabaseError && error.code === "28P01")
      throw passwordsMissing(join(home, fileName), "has other ones");
    throw error;
  } finally {
    await client.end().catch(() => undefined);
  }
}

import { resolve } from "node:path";
import { type Config, ConfigError } from "../config/config.ts";
import { type EmbeddedPostgres, startEmbeddedPostgres } from "../postgres/embedded.ts";
import { hasData } from "../postgres/location.ts";
import { type Database, openDatabase } from "../store/database/database.ts";
import type { SchemaUrls } from "../store/schema/migrate.ts";
import { unlessAborted } from "./process.ts";

export function embeddedUrls(postgres: EmbeddedPostgres): SchemaUrls {
  return { databaseUrl: postgres.connectionString, ownerUrl: postgres.ownerConnectionString };
}

type DatabaseConfig = Pick<Config, "databaseUrl" | "migrationDatabaseUrl" | "home">;

/**
 * Runs a command with the configured database, or with the embedded one, which then runs for that time.
 *
 * @param signal the command is not waited for any longer
 */
export async function withDatabase<Result>(
  config: DatabaseConfig,
  use: (urls: SchemaUrls) => Promise<Result>,
  signal?: AbortSignal,
): Promise<Result> {
  const { databaseUrl, migrationDatabaseUrl } = config;
  const run = (urls: SchemaUrls) => (signal === undefined ? use(urls) : unlessAborted(signal, use(urls)));
  if (databaseUrl !== null) return run({ databaseUrl, ownerUrl: migrationDatabaseUrl });
  const embedded = await startEmbeddedPostgres({ home: resolve(config.home), log: () => undefined });
  try {
    return await run(embeddedUrls(embedded));
  } finally {
    await embedded.stop();
  }
}

/** The same for a command that needs what a service has stored: it creates no database. */
export async function withExistingDatabase<Result>(
  config: DatabaseConfig,
  use: (urls: SchemaUrls) => Promise<Result>,
  signal?: AbortSignal,
): Promise<Result> {
  const home = resolve(config.home);
  if (config.databaseUrl === null && !(await hasData(home))) {
    throw new ConfigError([
      `DATABASE_URL is not set, and ${home} has no data of the sandbox. ` +
        "Set DATABASE_URL to the service's database, or PAYBELL_HOME to the sandbox's folder.",
    ]);
  }
  return withDatabase(config, use, signal);
}

/** Uses what is stored in a database, over a few connections. */
export async function withStore<Result>(
  databaseUrl: string,
  use: (database: Database) => Promise<Result>,
): Promise<Result> {
  const database = openDatabase(databaseUrl, { connectionsMax: 4, onIdleError: () => undefined });
  try {
    return await use(database);
  } finally {
    await database.close();
  }
}

/** A database on this machine: a unix socket, or a loopback address. */
const local = /^(|localhost|127(\.\d+){3}|\[::1\])$/;

/**
 * Whether a connection to another machine's database can be read or redirected in transit: without TLS, or with TLS
 * without verification. Only `sslmode=verify-full` certainly verifies, whatever the driver's version.
 */
export function isUnverifiedRemote(databaseUrl: string): boolean {
  const withHost = databaseUrl.replace(/^(\w+:\/\/(?:[^@/?#]*@)?)(?=[/?]|$)/, "$1localhost");
  if (!URL.canParse(withHost)) return false;
  const { hostname, searchParams } = new URL(withHost);
  const host = searchParams.get("host") ?? hostname;
  return !host.startsWith("/") && !local.test(host) && searchParams.get("sslmode") !== "verify-full";
}

const untrusted =
  "Add sslrootcert=<file> to DATABASE_URL: the PEM certificate of the authority that issued the server's certificate.";
const dates =
  "Renew the server's certificate and reload the server. If its dates are right, correct this machine's clock.";

/** By the codes of PostgreSQL and of Node. */
const remedies: Readonly<Record<string, string>> = {
  "28P01":
    "Correct the password in PGPASSWORD or DATABASE_URL. If it is lost, set another one in psql: \\password <role>",
  "28000":
    "Allow this role and this machine in the server's pg_hba.conf: hostssl <database> <role> <address>/32 " +
    "scram-sha-256. Then reload the server. If it says `no encryption`, add sslmode=verify-full to DATABASE_URL.",
  "3D000": "Create the database, or correct its name in DATABASE_URL.",
  DEPTH_ZERO_SELF_SIGNED_CERT: untrusted,
  SELF_SIGNED_CERT_IN_CHAIN: untrusted,
  UNABLE_TO_GET_ISSUER_CERT: untrusted,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: untrusted,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: untrusted,
  ERR_TLS_CERT_ALTNAME_INVALID:
    "Name the server in DATABASE_URL as its certificate does, or issue a certificate for the name that is there.",
  CERT_HAS_EXPIRED: dates,
  CERT_NOT_YET_VALID: dates,
  ENOENT: "Correct the file that sslrootcert, sslcert or sslkey in DATABASE_URL names.",
};

/** By the driver's messages, which have no code. */
const saying: readonly (readonly [RegExp, string])[] = [
  [/password must be a (non-empty )?string/, "Set the role's password in PGPASSWORD, or in DATABASE_URL."],
  [
    /does not support SSL/,
    "Turn on TLS in the server's postgresql.conf: ssl = on, ssl_cert_file, ssl_key_file. Then reload the server.",
  ],
];

/** The next step after a connection to the database failed. */
export function databaseRemedy(failure: Error): string {
  const { code = "", message } = failure as NodeJS.ErrnoException;
  const said = saying.find(([words]) => words.test(message))?.[1];
  return remedies[code] ?? said ?? "Check DATABASE_URL, the server, and the network to it.";
}

import { mkdir, realpath } from "node:fs/promises";
import { join } from "node:path";
import { installedBinaries, usableBinaries } from "./binaries.ts";
import { connectionString, ensureCluster, ensureDatabase, keptPasswords } from "./cluster.ts";
import { chooseDataLocation, recordDataLocation, socketPort } from "./location.ts";
import { launchPostmaster, logTail, stopOrphan, stopPostmaster } from "./postmaster.ts";
import { acquireServiceLock, type ServiceLock } from "./service-lock.ts";
import { defaultSettings } from "./settings.ts";
import { startErrorOf } from "./start-error.ts";

/** The PostgreSQL that Paybell brings along, running. */
export interface EmbeddedPostgres {
  /**
   * `postgres://paybell:…@/paybell?host=…`, for the service: its role reads and writes rows. A unix socket in a folder
   * of mode 0700; there is no TCP.
   */
  readonly connectionString: string;
  /** For migrations: the role that owns the schema. */
  readonly ownerConnectionString: string;
  /** For what no service does: tests and benchmarks make databases with it. */
  readonly superuserConnectionString: string;
  readonly socketDirectory: string;
  readonly port: number;
  /** The server's own, such as `18.4`. */
  readonly version: string;
  readonly pid: number;
  /**
   * Resolves when the server ended without being asked to, with the last lines of its log. Pending for ever otherwise.
   */
  readonly died: Promise<string>;
  /** Ends it with a fast shutdown: what is committed stays, open transactions are rolled back. May be called again. */
  stop(): Promise<void>;
}

export interface EmbeddedPostgresOptions {
  /** The service's folder (`.paybell`): data in `postgres/`, the server's log in `postgres.log`. Made when missing. */
  readonly home: string;
  /** Messages for the operator: one line each, no secrets. */
  readonly log: (line: string) => void;
  /** PostgreSQL settings over the defaults (settings.ts), by their names there. */
  readonly settings?: Readonly<Record<string, string>>;
  /**
   * The directory of data and binaries if PostgreSQL's user cannot enter theirs, as root only. Default
   * `/var/lib/paybell`.
   */
  readonly systemDirectory?: string;
  /** The timeout of a fast shutdown, after which it becomes an immediate one. Default 30,000. */
  readonly stopTimeoutMs?: number;
}

/**
 * Starts PostgreSQL on this home. One that a killed service left running there is stopped first. The home belongs to
 * this process until {@link EmbeddedPostgres.stop}; a second service on it is refused.
 *
 * Measured on two cores: 60–95 ms on an existing data directory, 1.0–1.5 s when it is made first; a stop 15–70 ms.
 *
 * @throws PostgresStartError with a code and a remedy for each thing that an operator can fix
 */
export async function startEmbeddedPostgres(options: EmbeddedPostgresOptions): Promise<EmbeddedPostgres> {
  try {
    const home = await openHome(options.home);
    const lock = await acquireServiceLock(home);
    try {
      return await run(home, options, lock);
    } catch (error) {
      await lock.release();
      throw error;
    }
  } catch (error) {
    throw startErrorOf(error, options.home);
  }
}

async function openHome(home: string): Promise<string> {
  // As root, PostgreSQL's own user passes through the home to its data there, without seeing other files in it.
  await mkdir(home, { recursive: true, mode: process.getuid?.() === 0 ? 0o711 : 0o700 });
  return realpath(home);
}

async function run(
  home: string,
  { settings, systemDirectory = "/var/lib/paybell", log, stopTimeoutMs }: EmbeddedPostgresOptions,
  lock: ServiceLock,
): Promise<EmbeddedPostgres> {
  const location = await chooseDataLocation(home, systemDirectory, log);
  const passwords = await keptPasswords(home, location.dataDirectory);
  await stopOrphan(location.dataDirectory, log, stopTimeoutMs);
  const all = { ...defaultSettings, ...settings };
  const copyTo = location.account === undefined ? home : systemDirectory;
  const binaries = await usableBinaries(await installedBinaries(), location.account, copyTo);
  await ensureCluster(location, binaries, passwords.superuser, all["fsync"] !== "off");
  await recordDataLocation(location);
  const logPath = join(home, "postgres.log");
  const postmaster = await launchPostmaster({ location, binaries, settings: all, logPath, log });
  let stopping: Promise<void> | undefined;
  const stop = () => {
    stopping ??= stopPostmaster(postmaster, log, stopTimeoutMs).then(() => lock.release());
    return stopping;
  };
  const never = new Promise<string>(() => undefined);
  const died = postmaster.gone.then(() => (stopping === undefined ? logTail(logPath) : never));
  const { pid, socketDirectory } = postmaster;
  try {
    const version = await ensureDatabase(socketDirectory, passwords, home);
    return {
      connectionString: connectionString(socketDirectory, "service", passwords),
      ownerConnectionString: connectionString(socketDirectory, "owner", passwords),
      superuserConnectionString: connectionString(socketDirectory, "superuser", passwords),
      ...{ socketDirectory, port: socketPort, version, pid, died, stop },
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

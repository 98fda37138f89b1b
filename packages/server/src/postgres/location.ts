import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { chmod, chown, lstat, mkdir, readdir, readFile, rename, rm, rmdir, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Account, runTool } from "./process.ts";
import { homeNotPermitted, PostgresStartError } from "./start-error.ts";

/** The location of one home's data, and the account that runs PostgreSQL on it. */
export interface DataLocation {
  readonly home: string;
  /** Holds the data directory, the drafts of one, and the socket: the home itself, or a folder of the system. */
  readonly base: string;
  readonly dataDirectory: string;
  readonly account: Account | undefined;
}

const locationFile = "postgres-location";

/**
 * As an ordinary user everything is in the home. As root PostgreSQL runs as another user; if that one cannot enter the
 * home (below /root, mode 0700), the data are in `<systemDirectory>/<hash of the home>`, which a file in the home
 * records.
 */
export async function chooseDataLocation(
  home: string,
  systemDirectory: string,
  log: (line: string) => void,
): Promise<DataLocation> {
  const recorded = await recordedBase(home);
  if (recorded !== undefined) return recordedLocation(home, recorded);
  const inHome = await locationIn(home, home);
  if (await canEnter(inHome.account, home)) return inHome;
  if (existsSync(inHome.dataDirectory)) throw homeNotPermitted(`${home} as the user that owns its data`);
  const base = join(systemDirectory, createHash("sha256").update(home).digest("hex").slice(0, 16));
  // Others may pass through to what they own, and list nothing.
  await mkdir(base, { recursive: true, mode: 0o755 });
  const why = `PostgreSQL does not run as root, and its user cannot enter ${home}`;
  log(`${why}: its data is in ${base}; keep and back up both.`);
  return locationIn(home, base);
}

async function locationIn(home: string, base: string): Promise<DataLocation> {
  const dataDirectory = join(base, "postgres");
  return { home, base, dataDirectory, account: await postgresAccount(dataDirectory) };
}

/** Whether a PostgreSQL has run on this home. */
export async function hasData(home: string): Promise<boolean> {
  return (await recordedBase(home)) !== undefined || existsSync(join(home, "postgres"));
}

/** Written once the data exist, so that a home never refers to missing data. */
export async function recordDataLocation(location: DataLocation): Promise<void> {
  if (location.base === location.home || (await recordedBase(location.home)) === location.base) return;
  const draft = join(location.home, `${locationFile}.draft`);
  await writeFile(draft, `${location.base}\n`, { mode: 0o644, flush: true });
  await rename(draft, join(location.home, locationFile));
}

async function recordedLocation(home: string, base: string): Promise<DataLocation> {
  const found = await stat(join(base, "postgres")).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== "ENOENT") throw homeNotPermitted(base, error);
  });
  if (found !== undefined) return locationIn(home, base);
  // An empty start here would look healthy, but would have lost every transaction.
  throw new PostgresStartError(
    "data_missing",
    `The data of ${home} was in ${base} and is no longer there.`,
    `Restore ${base} from a backup, or delete ${join(home, locationFile)} to begin with an empty ledger.`,
  );
}

async function recordedBase(home: string): Promise<string | undefined> {
  const text = await readFile(join(home, locationFile), "utf8").catch(() => "");
  return text.trim() === "" ? undefined : text.trim();
}

/**
 * PostgreSQL refuses to run as root: then it runs as the owner of existing data, otherwise as `postgres`, otherwise as
 * `nobody`. Undefined means "as ourselves".
 */
export async function postgresAccount(dataDirectory: string, passwdFile = "/etc/passwd"): Promise<Account | undefined> {
  if (process.getuid?.() !== 0) return undefined;
  const owner = await stat(dataDirectory).catch(() => undefined);
  if (owner !== undefined && owner.uid !== 0) return { uid: owner.uid, gid: owner.gid };
  const passwd = await readFile(passwdFile, "utf8").catch(() => "");
  for (const name of ["postgres", "nobody"]) {
    const [, uid, gid] = new RegExp(`^${name}:[^:]*:([1-9]\\d*):(\\d+):`, "m").exec(passwd) ?? [];
    if (uid !== undefined) return { uid: Number(uid), gid: Number(gid) };
  }
  throw new PostgresStartError(
    "account_unusable",
    "PostgreSQL does not run as root, and this system has neither a user `postgres` nor `nobody`.",
    "Run Paybell as an ordinary user, or create one: useradd --system postgres.",
  );
}

/** Tested by the system itself, as that user: permission bits do not cover access lists or remote disks. */
export async function canEnter(account: Account | undefined, directory: string): Promise<boolean> {
  if (account === undefined) return true;
  const result = await runTool("/bin/sh", ["-c", 'test -x "$1"', "sh", directory], account);
  return result.exitCode === 0;
}

/** The kernel's bound on the path of a unix socket, its closing zero byte not counted. */
const socketPathBytesMax = process.platform === "darwin" ? 103 : 107;

/** The socket's file carries it as its name; nothing listens on TCP. */
export const socketPort = 5432;

/**
 * The folder of the unix socket. PostgreSQL trusts any process that can open the socket, so the folder keeps others
 * out: mode 0700, ours. If the path is too long, a short one below the system's temporary folder is used, the same at
 * each start.
 */
export async function makeSocketDirectory({ base, account }: DataLocation): Promise<string> {
  const directory = socketDirectoryOf(base);
  const ourselves = process.getuid?.();
  await mkdir(directory, { mode: 0o700 }).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== "EEXIST") throw error;
  });
  // The temporary folder is everybody's: a folder of that name may have been put there to listen in our stead. Root may
  // have been stopped between making its own and giving it away.
  const found = await lstat(directory);
  if (!found.isDirectory() || (found.uid !== ourselves && found.uid !== account?.uid)) {
    throw new PostgresStartError(
      "socket_unusable",
      `${directory} belongs to someone else, so the database's socket is not safe there.`,
      `Remove ${directory}, or set PAYBELL_HOME to a folder with a shorter path.`,
    );
  }
  if (account !== undefined) await chown(directory, account.uid, account.gid);
  await chmod(directory, 0o700);
  return directory;
}

export function socketDirectoryOf(base: string, temporaryDirectory = tmpdir()): string {
  const directory = join(base, "postgres-socket");
  if (fits(directory)) return directory;
  const short = join(temporaryDirectory, `paybell-${createHash("sha256").update(base).digest("hex").slice(0, 16)}`);
  if (fits(short)) return short;
  throw new PostgresStartError(
    "socket_unusable",
    `The path ${short} is too long for a unix socket (${socketPathBytesMax} bytes at most).`,
    "Set TMPDIR or PAYBELL_HOME to a folder with a shorter path.",
  );
}

/** Removes the folder with what a socket leaves there; anything unknown keeps it. */
export async function cleanSocketDirectory(directory: string): Promise<void> {
  for (const name of await readdir(directory).catch(() => [])) {
    if (name.startsWith(".s.PGSQL.")) await rm(join(directory, name), { force: true });
  }
  await rmdir(directory).catch(() => undefined);
}

function fits(directory: string): boolean {
  return Buffer.byteLength(join(directory, `.s.PGSQL.${socketPort}`)) <= socketPathBytesMax;
}

import { createHash } from "node:crypto";
import { chmod, chown, lstat, mkdir, readdir, rm, rmdir } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { DataLocation } from "./data-location.ts";
import { PostgresStartError } from "./start-error.ts";

/** The kernel's bound on the path of a unix socket, its closing zero byte not counted. */
const socketPathBytesMax = process.platform === "darwin" ? 103 : 107;

/** The socket's file carries it as its name; nothing listens on TCP. */
export const socketPort = 5432;

/**
 * The folder of the unix socket. PostgreSQL trusts any process that can open the socket, so the folder keeps others
 * out: mode 0700, ours. If the path is too long, a short one below the system's temporary folder is used, the same at
 * each start.
 */
export async function makeSocketDirectory(location: DataLocation): Promise<string> {
  const directory = socketDirectoryOf(location.base);
  try {
    await mkdir(directory, { mode: 0o700 });
    if (location.account !== undefined) await chown(directory, location.account.uid, location.account.gid);
  } catch (error) {
    if (!(error instanceof Error && "code" in error && error.code === "EEXIST")) throw error;
  }
  await requireOurs(directory, location);
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

/** The temporary folder is everybody's: a folder of that name may have been put there to listen in our stead. */
async function requireOurs(directory: string, location: DataLocation): Promise<void> {
  const found = await lstat(directory);
  const owner = location.account?.uid ?? process.getuid?.();
  // Root may have been stopped between making the folder and giving it away.
  if (found.isDirectory() && found.uid === 0 && location.account !== undefined) {
    await chown(directory, location.account.uid, location.account.gid);
    return;
  }
  if (found.isDirectory() && found.uid === owner) return;
  throw new PostgresStartError(
    "socket_unusable",
    `${directory} belongs to someone else, so the database's socket is not safe there.`,
    `Remove ${directory}, or set PAYBELL_HOME to a folder with a shorter path.`,
  );
}

function fits(directory: string): boolean {
  return Buffer.byteLength(join(directory, `.s.PGSQL.${socketPort}`)) <= socketPathBytesMax;
}

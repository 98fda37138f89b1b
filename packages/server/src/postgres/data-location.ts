import { createHash } from "node:crypto";
import { mkdir, readFile, rename, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { canEnter, postgresAccount } from "./account.ts";
import { homeNotPermitted, PostgresStartError } from "./start-error.ts";
import type { Account } from "./tool.ts";

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
  if (recorded !== undefined) return recordedPlace(home, recorded);
  const inHome = join(home, "postgres");
  const account = await postgresAccount(inHome);
  if (await canEnter(account, home)) return { home, base: home, dataDirectory: inHome, account };
  if (await isDirectory(inHome)) throw homeNotPermitted(`${home} as the user that owns its data`);
  const base = join(systemDirectory, createHash("sha256").update(home).digest("hex").slice(0, 16));
  // Others may pass through to what they own, and list nothing.
  await mkdir(base, { recursive: true, mode: 0o755 });
  const why = `PostgreSQL does not run as root, and its user cannot enter ${home}`;
  log(`${why}: its data is in ${base}; keep and back up both.`);
  const dataDirectory = join(base, "postgres");
  return { home, base, dataDirectory, account: await postgresAccount(dataDirectory) };
}

/** Whether a PostgreSQL has run on this home. */
export async function hasData(home: string): Promise<boolean> {
  return (await recordedBase(home)) !== undefined || (await isDirectory(join(home, "postgres")));
}

/** Written once the data exist, so that a home never refers to missing data. */
export async function recordDataLocation(location: DataLocation): Promise<void> {
  if (location.base === location.home || (await recordedBase(location.home)) === location.base) return;
  const draft = join(location.home, `${locationFile}.draft`);
  await writeFile(draft, `${location.base}\n`, { mode: 0o644, flush: true });
  await rename(draft, join(location.home, locationFile));
}

async function recordedPlace(home: string, base: string): Promise<DataLocation> {
  const dataDirectory = join(base, "postgres");
  const found = await stat(dataDirectory).catch((error: unknown) => {
    if (error instanceof Error && "code" in error && error.code !== "ENOENT") throw homeNotPermitted(base, error);
    return undefined;
  });
  if (found !== undefined) return { home, base, dataDirectory, account: await postgresAccount(dataDirectory) };
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

async function isDirectory(path: string): Promise<boolean> {
  return (await stat(path).catch(() => undefined))?.isDirectory() ?? false;
}

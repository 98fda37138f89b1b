import { chown, mkdir, mkdtemp, open, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type Binaries, majorOf } from "./binaries.ts";
import type { DataLocation } from "./data-location.ts";
import { dataRefused, explainFailedStart, otherMajorVersion } from "./failed-start.ts";
import { databaseRoles } from "./passwords.ts";
import { runTool } from "./tool.ts";

/** The one database of the cluster that holds anything. */
export const databaseName = "paybell";

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
  if (entries.includes("PG_VERSION")) return requireSameMajor(location, binaries);
  if (entries.length > 0) throw dataRefused(location.dataDirectory, "it holds files, but PG_VERSION is missing");
  for (const name of await readdir(location.base)) {
    // The initdb of a killed service may still be writing there; what it puts back is removed at the next start.
    if (name.startsWith(draftPrefix)) await removeTree(join(location.base, name)).catch(() => undefined);
  }
  await makeCluster(location, binaries, password, durable);
}

async function makeCluster(
  location: DataLocation,
  binaries: Binaries,
  password: string,
  durable: boolean,
): Promise<void> {
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
    await syncDirectory(location.base);
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

async function requireSameMajor(location: DataLocation, binaries: Binaries): Promise<void> {
  const found = (await readFile(join(location.dataDirectory, "PG_VERSION"), "utf8")).trim();
  if (found !== majorOf(binaries)) throw otherMajorVersion(location.dataDirectory, found, majorOf(binaries));
}

function removeTree(path: string): Promise<void> {
  return rm(path, { recursive: true, force: true, maxRetries: 5, retryDelay: 50 });
}

async function syncDirectory(path: string): Promise<void> {
  const directory = await open(path, "r");
  await directory.sync().finally(() => directory.close());
}

function absentAsEmpty(error: unknown): string[] {
  if (error instanceof Error && "code" in error && error.code === "ENOENT") return [];
  throw error;
}

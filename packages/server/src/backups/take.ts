import { mkdir, open, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { BackupError, type BackupManifest, dataFolder, manifestFile, readWalStart } from "./manifest.ts";
import { findProgram, runProgram } from "./programs.ts";
import { verifyData } from "./verify.ts";

/** The server that is backed up, as it says itself. */
export interface BackupSource {
  /** The server's clock. */
  readonly nowMs: number;
  readonly version: string;
  readonly major: number;
  /** The number of the last migration; 0: no service was started on it. */
  readonly schema: number;
  readonly walArchived: boolean;
  readonly walSegmentBytes: number;
  /** Beside PostgreSQL's own two. */
  readonly tablespaces: readonly string[];
  /** Citus spreads its data over several servers. */
  readonly isCluster: boolean;
}

export interface TakeOptions {
  /** Gets a folder for each backup. */
  readonly folder: string;
  /** The connection URL of a role with the right REPLICATION. */
  readonly url: string;
  readonly env: NodeJS.ProcessEnv;
  /** The version of this service. */
  readonly version: string;
  /** Reads the source: before the backup and after it. */
  source(): Promise<BackupSource>;
  /** Ends it, with nothing left of it. */
  readonly signal: AbortSignal;
}

export interface TakenBackup {
  readonly path: string;
  readonly manifest: BackupManifest;
}

/**
 * Takes a backup by pg_basebackup, and verifies it. It has its name only once it is complete and on disk.
 *
 * @throws BackupError
 */
export async function takeBackup({ folder, url, env, version, source, signal }: TakeOptions): Promise<TakenBackup> {
  const before = await source();
  requireFit(before);
  const program = await findProgram("pg_basebackup", before.major, env);
  const name = `paybell-${new Date(before.nowMs).toISOString().replace(/[-:]|\.\d+/g, "")}`;
  const path = join(folder, name);
  const draft = `${path}.partial`;
  const data = join(draft, dataFolder);
  await mkdir(folder, { recursive: true, mode: 0o700 });
  await mkdir(draft, { mode: 0o700 });
  try {
    const { target, password } = withoutPassword(url);
    const args = [
      ...["--dbname", target, "--pgdata", data, "--format=plain", "--wal-method=stream", "--checkpoint=fast"],
      ...["--manifest-checksums=SHA256", "--label", name, "--no-password"],
    ];
    // A process list shows arguments to everybody, but not the environment.
    await runProgram(program, args, { ...env, ...(password !== undefined && { PGPASSWORD: password }) }, signal);
    await verifyData(data, before.major, env, signal);
    const after = await source();
    const manifest: BackupManifest = {
      format: 1,
      name,
      paybell: version,
      schema: before.schema,
      postgres: before.version,
      postgresMajor: before.major,
      startedAt: new Date(before.nowMs).toISOString(),
      endedAt: new Date(after.nowMs).toISOString(),
      walArchived: before.walArchived,
      walSegmentBytes: before.walSegmentBytes,
      ...(await readWalStart(data)),
    };
    await writeFile(join(draft, manifestFile), `${JSON.stringify(manifest, null, 2)}\n`, { flush: true, mode: 0o600 });
    await sync(draft);
    await rename(draft, path);
    await sync(folder);
    return { path, manifest };
  } catch (error) {
    await rm(draft, { recursive: true, force: true });
    throw error;
  }
}

function requireFit({ schema, tablespaces, isCluster }: BackupSource): void {
  if (isCluster) {
    const remedy =
      "Back up the coordinator and each worker by a tool of Citus's, such as a restore point of all nodes.";
    throw new BackupError("This database is spread over several servers by Citus.", remedy);
  }
  if (schema === 0) throw new BackupError("No service was started on this database: there is nothing to back up.", "");
  if (tablespaces.length > 0) {
    throw new BackupError(
      `The server has tablespaces of its own: ${tablespaces.join(", ")}.`,
      "Use a tool that restores them to places of their own, such as pgBackRest.",
    );
  }
}

/** As the driver reads it, without the password: of the user, or of the query. */
export function withoutPassword(url: string): { readonly target: string; readonly password: string | undefined } {
  const [head = "", query] = url.split(/\?(.*)/s);
  const [, scheme, user = "", ofUser, address = ""] =
    /^(\w+:\/\/)([^:@/]*)(?::([^/]*))?(@[^@/]*(?:\/.*)?)$/.exec(head) ?? [];
  const parameters = query?.split("&") ?? [];
  const kept = parameters.filter((one) => !one.startsWith(inQuery));
  const ofQuery = parameters.find((one) => one.startsWith(inQuery))?.slice(inQuery.length);
  const password = ofQuery ?? ofUser;
  return {
    target: `${scheme === undefined ? head : scheme + user + address}${kept.length > 0 ? `?${kept.join("&")}` : ""}`,
    password: password && decode(password),
  };
}

const inQuery = "password=";

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

async function sync(folder: string): Promise<void> {
  const handle = await open(folder, "r");
  await handle.sync().finally(() => handle.close());
}

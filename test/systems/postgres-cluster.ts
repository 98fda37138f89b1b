import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmod, chown, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { Client } from "pg";
import { postgresAccount } from "../../packages/server/src/postgres/location.ts";
import { type Account, runTool } from "../../packages/server/src/postgres/process.ts";
import { pathOf } from "../support/programs.ts";
import { eventually } from "../support/service.ts";

/** The superuser's. */
export const clusterPassword = "a-password-of-the-drill";

/** A folder with the data of servers, their socket and an archive, for the user that PostgreSQL runs as. */
export interface ClusterFolder {
  readonly path: string;
  readonly account: Account | undefined;
  readonly archive: string;
  /** An empty folder within. */
  make(name: string): Promise<string>;
  remove(): Promise<void>;
}

export async function makeClusterFolder(): Promise<ClusterFolder> {
  const path = await mkdtemp(join(tmpdir(), "paybell-drill-"));
  await chmod(path, 0o711);
  const account = await postgresAccount(join(path, "none"));
  async function make(name: string): Promise<string> {
    const made = join(path, name);
    await mkdir(made, { mode: 0o700 });
    if (account !== undefined) await chown(made, account.uid, account.gid);
    return made;
  }
  return {
    path,
    account,
    archive: await make("archive"),
    make,
    remove: () => rm(path, { recursive: true, force: true }),
  };
}

/** Makes a server's data, which archives its log as docs/operator/backups.md says. */
export async function initCluster(folder: ClusterFolder): Promise<string> {
  const data = await folder.make("data");
  const passwordFile = join(folder.path, "password");
  await writeFile(passwordFile, clusterPassword, { mode: 0o644 });
  const args = ["-D", data, "-U", "postgres", "--auth=scram-sha-256", `--pwfile=${passwordFile}`, "--encoding=UTF8"];
  const { exitCode, output } = await runTool(
    join(dirname(pathOf("postgres")), "initdb"),
    [...args, "--no-sync"],
    folder.account,
  );
  if (exitCode !== 0) throw new Error(`initdb failed: ${output}`);
  const kept = `${folder.archive}/%f`;
  const settings = [
    "archive_mode = on",
    `archive_command = 'test ! -f ${kept} && cp %p ${kept}.partial && mv ${kept}.partial ${kept}'`,
    "fsync = off",
    "shared_buffers = '32MB'",
  ];
  await writeFile(join(data, "postgresql.auto.conf"), `${settings.join("\n")}\n`);
  return data;
}

export interface RunningCluster {
  /** @param role default: the superuser */
  url(database: string, role?: string): string;
  query<Row extends object>(database: string, text: string): Promise<readonly Row[]>;
  /** As a power cut ends it: nothing is written any more. */
  crash(): Promise<void>;
}

/**
 * Starts a server on a unix socket beside its data, and waits until it takes writes.
 *
 * @param args further arguments; a port that they set is `port`
 */
export async function startCluster(
  folder: ClusterFolder,
  data: string,
  args: readonly string[] = [],
  port = 5_432,
): Promise<RunningCluster> {
  const socket = dirname(data);
  const child = spawn(
    pathOf("postgres"),
    ["-D", data, "-c", `unix_socket_directories=${data}`, "-c", "listen_addresses=", ...args],
    { stdio: ["ignore", "pipe", "pipe"], cwd: "/", env: { PATH: process.env["PATH"], LANG: "C" }, ...folder.account },
  );
  const words: string[] = [];
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk: Buffer) => words.push(chunk.toString()));
  let ended = false;
  const exited = once(child, "exit").then(() => {
    ended = true;
  });
  const url = (database: string, role = "postgres") =>
    `postgres://${role}:${clusterPassword}@/${database}?host=${data}&port=${port}&sslmode=disable`;
  async function query<Row extends object>(database: string, text: string): Promise<readonly Row[]> {
    const client = new Client({ connectionString: url(database) });
    // A crash ends it.
    client.on("error", () => undefined);
    await client.connect();
    try {
      return (await client.query<Row>(text)).rows;
    } finally {
      await client.end();
    }
  }
  await eventually(`the server in ${socket}`, async () => {
    if (ended) throw new Error(`the server ended: ${words.join("")}`);
    const rows = await query<{ replays: boolean }>("postgres", "SELECT pg_is_in_recovery() AS replays").catch(() => []);
    return rows[0]?.replays === false ? true : undefined;
  });
  return {
    url,
    query,
    async crash() {
      child.kill("SIGQUIT");
      await exited;
    },
  };
}

import { execFile } from "node:child_process";
import { chmod, chown, mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";

const run = promisify(execFile);

/** Where Debian's package postgresql-15 has its programs. */
const programs = process.env["PG_BIN"] ?? "/usr/lib/postgresql/15/bin";
const names = ["coordinator", "worker-1", "worker-2"] as const;
const isRoot = process.getuid?.() === 0;

/** A coordinator and two workers of Citus on 127.0.0.1, for one run of the tests. */
export interface CitusCluster {
  readonly folder: string;
  /** To the database `postgres` of each node, the coordinator first. */
  readonly urls: readonly string[];
  stop(): Promise<void>;
}

/** What is needed is not on this machine. */
export class CitusMissing extends Error {
  override readonly name = "CitusMissing";
}

/** @throws CitusMissing with what is to be installed */
export async function requireCitus(): Promise<void> {
  const { stdout } = await run(join(programs, "pg_config"), ["--pkglibdir"]).catch(() => {
    throw new CitusMissing(
      `PostgreSQL 15 is not in ${programs}. Install Debian's package postgresql-15, or name its folder in PG_BIN.`,
    );
  });
  const library = join(stdout.trim(), "citus.so");
  const isThere = await stat(library).catch(() => undefined);
  if (isThere === undefined) {
    throw new CitusMissing(
      `Citus is not installed: there is no ${library}. Install Citus 12.1 to 13.2 for PostgreSQL 15, ` +
        "from its packages, or from a copy of its source as that says.",
    );
  }
}

export async function startCluster(): Promise<CitusCluster> {
  const folder = await mkdtemp(join(tmpdir(), "paybell-citus-"));
  await chmod(folder, 0o711);
  if (isRoot) {
    const [{ stdout: uid }, { stdout: gid }] = await Promise.all([
      run("id", ["-u", "postgres"]),
      run("id", ["-g", "postgres"]),
    ]);
    await chown(folder, Number(uid), Number(gid));
  }
  const stop = async () => {
    for (const name of names) await stopNode(folder, name).catch(() => undefined);
    await rm(folder, { recursive: true, force: true });
  };
  try {
    const ports: number[] = [];
    for (const name of names) ports.push(await makeNode(folder, name));
    for (const name of names) await startNode(folder, name);
    return { folder, urls: ports.map((port) => `postgres://postgres@127.0.0.1:${port}/postgres`), stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** As in a crash, and recovered from its log. @param no of the node, 0 is the coordinator */
export async function crashNode(folder: string, no: number): Promise<() => Promise<void>> {
  const name = names[no] ?? names[0];
  const [pid] = (await readFile(join(folder, name, "postmaster.pid"), "utf8")).split("\n");
  process.kill(Number(pid), "SIGKILL");
  return () => startNode(folder, name);
}

async function makeNode(folder: string, name: string): Promise<number> {
  const data = join(folder, name);
  const port = await freePort();
  await asPostgres("initdb", ["-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "-N"]);
  const settings = {
    listen_addresses: "'127.0.0.1'",
    port,
    unix_socket_directories: "''",
    shared_preload_libraries: "'citus'",
    max_connections: 300,
    max_prepared_transactions: 300,
    shared_buffers: "'128MB'",
    // The machine is never cut off from its power: what a killed server wrote is in the operating system's memory.
    fsync: "off",
    "citus.node_conninfo": "'sslmode=disable'",
    "citus.enable_statistics_collection": "off",
  };
  const lines = Object.entries(settings).map(([key, value]) => `${key} = ${value}`);
  const path = join(data, "postgresql.auto.conf");
  await writeFile(path, `${lines.join("\n")}\n`);
  return port;
}

async function startNode(folder: string, name: string): Promise<void> {
  await asPostgres("pg_ctl", ["start", "-D", join(folder, name), "-l", join(folder, `${name}.log`), "-w", "-s"]);
}

async function stopNode(folder: string, name: string): Promise<void> {
  await asPostgres("pg_ctl", ["stop", "-D", join(folder, name), "-m", "immediate", "-w", "-s"]);
}

/** PostgreSQL refuses to run as root. */
async function asPostgres(program: string, parameters: readonly string[]): Promise<void> {
  const path = join(programs, program);
  if (isRoot) await run("runuser", ["-u", "postgres", "--", path, ...parameters], { cwd: "/" });
  else await run(path, [...parameters]);
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  if (address === null || typeof address === "string") throw new Error("no port is free");
  return address.port;
}

import { execFile } from "node:child_process";
import { chmod, chown, mkdir, readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { promisify } from "node:util";
import { Client } from "pg";
import { freePort } from "./instance.ts";
import { FaultyLink } from "./link.ts";
import type { PostgresCluster } from "./postgres.ts";
import type { SeededRandom } from "./random.ts";

const run = promisify(execFile);

/** The folder of the programs of Debian's package postgresql-15. */
const programs = process.env["PG_BIN"] ?? "/usr/lib/postgresql/15/bin";
/** After a `kill -9` its own processes need a moment to notice, and PostgreSQL refuses to start beside them. */
const leftoversTimeoutMs = 15_000;
const leftoversPauseMs = 200;
const isRoot = process.getuid?.() === 0;

/** Thrown if a required program is missing on this machine. */
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
        "from its packages, or from a copy of its source: npm run citus:build -- <folder>",
    );
  }
}

/** The folder of several nodes, which PostgreSQL's user can enter. */
export async function prepareNodes(folder: string): Promise<void> {
  await mkdir(folder, { recursive: true });
  await chmod(folder, 0o711);
  if (!isRoot) return;
  const [{ stdout: uid }, { stdout: gid }] = await Promise.all([
    run("id", ["-u", "postgres"]),
    run("id", ["-g", "postgres"]),
  ]);
  await chown(folder, Number(uid), Number(gid));
}

/** One server of Citus on 127.0.0.1, which may die and be started again. */
export class CitusNode {
  readonly port: number;
  readonly #folder: string;
  readonly #name: string;
  #isRunning = false;

  private constructor(folder: string, name: string, port: number) {
    this.#folder = folder;
    this.#name = name;
    this.port = port;
  }

  /** @param more settings beside those that each node has */
  static async start(
    folder: string,
    name: string,
    more: Readonly<Record<string, string | number>> = {},
  ): Promise<CitusNode> {
    const port = await freePort();
    const node = new CitusNode(folder, name, port);
    await asPostgres("initdb", ["-D", node.#data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "-N"]);
    const settings = {
      listen_addresses: "'127.0.0.1'",
      port,
      unix_socket_directories: "''",
      shared_preload_libraries: "'citus'",
      max_connections: 300,
      max_prepared_transactions: 300,
      max_locks_per_transaction: 256,
      shared_buffers: "'128MB'",
      // The machine is never cut off from its power: what a killed server wrote is in the operating system's memory.
      fsync: "off",
      "citus.node_conninfo": "'sslmode=disable'",
      "citus.enable_statistics_collection": "off",
      // As docs/scaling.md says: a prepared transaction that a dead node left keeps its locks until then.
      "citus.recover_2pc_interval": "'5s'",
      ...more,
    };
    const lines = Object.entries(settings).map(([key, value]) => `${key} = ${value}`);
    await writeFile(join(node.#data, "postgresql.auto.conf"), `${lines.join("\n")}\n`);
    await node.start();
    return node;
  }

  get isRunning(): boolean {
    return this.#isRunning;
  }

  get address(): { readonly host: string; readonly port: number } {
    return { host: "127.0.0.1", port: this.port };
  }

  url(database = "postgres"): string {
    return `postgres://postgres@127.0.0.1:${this.port}/${database}`;
  }

  /** Resolves when it answers, recovered from its log. */
  async start(): Promise<void> {
    const log = join(this.#folder, `${this.#name}.log`);
    const deadlineMs = performance.now() + leftoversTimeoutMs;
    while (!this.#isRunning) {
      try {
        await asPostgres("pg_ctl", ["start", "-D", this.#data, "-l", log, "-w", "-s", "-t", "120"]);
        this.#isRunning = true;
      } catch (error) {
        if (performance.now() > deadlineMs) throw error;
        await pause(leftoversPauseMs);
      }
    }
  }

  /** As in a crash: it writes nothing more. */
  async kill(): Promise<void> {
    process.kill(await this.pid(), "SIGKILL");
    this.#isRunning = false;
  }

  /** The server's process id; all its processes descend from it. */
  async pid(): Promise<number> {
    const [pid] = (await readFile(join(this.#data, "postmaster.pid"), "utf8")).split("\n");
    return Number(pid);
  }

  async stop(): Promise<void> {
    await asPostgres("pg_ctl", ["stop", "-D", this.#data, "-m", "immediate", "-w", "-s"]).catch(() => undefined);
    this.#isRunning = false;
  }

  async query(sql: string, values: readonly unknown[] = [], database?: string): Promise<Record<string, unknown>[]> {
    const client = new Client({ connectionString: this.url(database) });
    await client.connect();
    try {
      return (await client.query(sql, [...values])).rows;
    } finally {
      await client.end();
    }
  }

  get #data(): string {
    return join(this.#folder, this.#name);
  }
}

/** PostgreSQL refuses to run as root. */
async function asPostgres(program: string, parameters: readonly string[]): Promise<void> {
  const path = join(programs, program);
  if (isRoot) await run("runuser", ["-u", "postgres", "--", path, ...parameters], { cwd: "/" });
  else await run(path, [...parameters]);
}

const databaseName = "paybell";
/** The coordinator first. */
export const nodeNames = ["coordinator", "worker-1", "worker-2"];

/** The database of a stage on Citus. All who connect to a node, other nodes among them, go through its link. */
export class CitusCluster implements Pick<PostgresCluster, "stop"> {
  readonly primary: CitusNode;
  readonly workers: readonly CitusNode[];
  /** To each worker, in the same order. */
  readonly workerLinks: readonly FaultyLink[];
  readonly #coordinatorLink: FaultyLink;

  private constructor([primary, ...workers]: readonly CitusNode[], [link, ...workerLinks]: readonly FaultyLink[]) {
    if (primary === undefined || link === undefined) throw new Error("A cluster has a coordinator.");
    this.primary = primary;
    this.workers = workers;
    this.#coordinatorLink = link;
    this.workerLinks = workerLinks;
  }

  static async start(folder: string, random: SeededRandom): Promise<CitusCluster> {
    await prepareNodes(folder);
    const nodes: CitusNode[] = [];
    const links: FaultyLink[] = [];
    for (const name of nodeNames) {
      const node = await CitusNode.start(folder, name);
      await node.query(`CREATE ROLE ${databaseName} SUPERUSER LOGIN`);
      await node.query(`CREATE DATABASE ${databaseName}`);
      await node.query("CREATE EXTENSION citus", [], databaseName);
      const link = new FaultyLink(node.address, random.fork(name));
      await link.listen("127.0.0.1");
      nodes.push(node);
      links.push(link);
    }
    await joinNodes(nodes, links, databaseName);
    return new CitusCluster(nodes, links);
  }

  async stop(): Promise<void> {
    await Promise.all([this.primary, ...this.workers].map((node) => node.stop()));
    await Promise.all([this.#coordinatorLink, ...this.workerLinks].map((link) => link.close()));
  }
}

/** Makes one cluster of nodes that have the extension. @param at where each is reached, in the same order */
async function joinNodes(
  nodes: readonly CitusNode[],
  at: readonly { readonly port: number }[],
  database: string,
): Promise<void> {
  const [coordinator] = nodes;
  for (const [nth, { port }] of at.entries()) {
    const join = nth === 0 ? "citus_set_coordinator_host" : "citus_add_node";
    await coordinator?.query(`SELECT ${join}($1, $2)`, ["127.0.0.1", port], database);
  }
}

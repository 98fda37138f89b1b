import { execFile } from "node:child_process";
import { mkdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { postgresAccount } from "../packages/server/src/postgres/location.ts";
import { FaultyLink } from "./link.ts";
import { openUp, type PostgresCluster, PostgresServer } from "./postgres.ts";
import type { SeededRandom } from "./random.ts";

const run = promisify(execFile);

/** The folder of the programs of Debian's package postgresql-15. */
const programsFolder = process.env["PG_BIN"] ?? "/usr/lib/postgresql/15/bin";

/** Thrown if a required program is missing on this machine. */
export class CitusMissing extends Error {
  override readonly name = "CitusMissing";
}

/** @throws CitusMissing with what is to be installed */
export async function requireCitus(): Promise<void> {
  const { stdout } = await run(join(programsFolder, "pg_config"), ["--pkglibdir"]).catch(() => {
    throw new CitusMissing(
      `PostgreSQL 15 is not in ${programsFolder}. Install Debian's package postgresql-15, or name its folder in PG_BIN.`,
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

const settings = {
  shared_preload_libraries: "citus",
  max_connections: "300",
  max_prepared_transactions: "300",
  max_locks_per_transaction: "256",
  shared_buffers: "128MB",
  // The machine is never cut off from its power: what a killed server wrote is in the operating system's memory.
  fsync: "off",
  "citus.node_conninfo": "sslmode=disable",
  "citus.enable_statistics_collection": "off",
  // As docs/scaling.md says: a prepared transaction that a dead node left keeps its locks until then.
  "citus.recover_2pc_interval": "5s",
};

/** Starts one server of Citus. @param folder one that PostgreSQL's user can enter: `openUp` */
export async function startCitusNode(folder: string, name: string): Promise<PostgresServer> {
  const programs = { bin: programsFolder, account: await postgresAccount(join(folder, "nothing-there")) };
  const node = new PostgresServer(join(folder, name), programs, settings);
  await node.initialise();
  await node.start();
  return node;
}

const databaseName = "paybell";
/** The coordinator first. */
export const nodeNames = ["coordinator", "worker-1", "worker-2"];

/** The database of a stage on Citus. All who connect to a node, other nodes among them, go through its link. */
export class CitusCluster implements Pick<PostgresCluster, "stop"> {
  readonly primary: PostgresServer;
  readonly workers: readonly PostgresServer[];
  /** To each worker, in the same order. */
  readonly workerLinks: readonly FaultyLink[];
  readonly #coordinatorLink: FaultyLink;

  private constructor([primary, ...workers]: readonly PostgresServer[], [link, ...workerLinks]: readonly FaultyLink[]) {
    if (primary === undefined || link === undefined) throw new Error("A cluster has a coordinator.");
    this.primary = primary;
    this.workers = workers;
    this.#coordinatorLink = link;
    this.workerLinks = workerLinks;
  }

  static async start(folder: string, random: SeededRandom): Promise<CitusCluster> {
    await mkdir(folder, { recursive: true });
    await openUp(folder);
    const nodes: PostgresServer[] = [];
    const links: FaultyLink[] = [];
    for (const name of nodeNames) {
      const node = await startCitusNode(folder, name);
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
  nodes: readonly PostgresServer[],
  at: readonly { readonly port: number }[],
  database: string,
): Promise<void> {
  const [coordinator] = nodes;
  for (const [nth, { port }] of at.entries()) {
    const join = nth === 0 ? "citus_set_coordinator_host" : "citus_add_node";
    await coordinator?.query(`SELECT ${join}($1, $2)`, ["127.0.0.1", port], database);
  }
}

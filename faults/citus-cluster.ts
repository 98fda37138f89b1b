import { CitusNode, prepareNodes } from "./citus-node.ts";
import { FaultyLink } from "./link.ts";
import type { PostgresCluster } from "./postgres-cluster.ts";
import type { SeededRandom } from "./random.ts";

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

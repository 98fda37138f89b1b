import type { Pool } from "pg";

/** One node of a plan, as PostgreSQL reports it after the statement ran. */
interface PlanNode {
  readonly "Node Type": string;
  readonly "Relation Name"?: string;
  readonly "Index Name"?: string;
  readonly "Actual Rows"?: number;
  readonly "Actual Loops"?: number;
  readonly "Rows Removed by Filter"?: number;
  readonly "Rows Removed by Index Recheck"?: number;
  readonly "Shared Hit Blocks"?: number;
  readonly "Shared Read Blocks"?: number;
  readonly Plans?: readonly PlanNode[];
}

/** The actual execution of one statement. */
export interface CarriedOut {
  readonly text: string;
  /** Rows that scans of tables returned or discarded. */
  readonly rowsTouched: number;
  /** Pages read, including index pages: index entries that a scan skips are in no row count. */
  readonly blocks: number;
  /** The indexes used, and how often. */
  readonly along: readonly string[];
  /** Tables that were scanned completely. */
  readonly readWhole: readonly string[];
}

const explainAll = `
  LOAD 'auto_explain';
  SET auto_explain.log_min_duration = 0;
  SET auto_explain.log_analyze = on;
  SET auto_explain.log_buffers = on;
  SET auto_explain.log_timing = off;
  SET auto_explain.log_format = json;
  SET auto_explain.log_level = notice`;

/**
 * Makes PostgreSQL report the plan of every statement that the pool's connections run from now on, with the rows of
 * each step: prepared statements unchanged, in their transactions.
 */
export function watchPlans(pool: Pool): CarriedOut[] {
  const carriedOut: CarriedOut[] = [];
  const { onConnect } = pool.options;
  // Awaited, because a connection without pipelining runs one statement at a time.
  pool.options.onConnect = async (client) => {
    await onConnect?.(client);
    client.on("notice", ({ message = "" }) => {
      const [, json] = /plan:\s*(\{[\s\S]*\})/.exec(message) ?? [];
      if (json === undefined) return;
      const { "Query Text": text, Plan: plan } = JSON.parse(json) as { "Query Text": string; Plan: PlanNode };
      carriedOut.push({ text, ...read(plan) });
    });
    await client.query(explainAll);
  };
  return carriedOut;
}

function read(plan: PlanNode): Omit<CarriedOut, "text"> {
  const scans = nodesOf(plan).filter((node) => node["Relation Name"] !== undefined && / Scan/.test(node["Node Type"]));
  const rows = scans.map((node) => {
    const each =
      (node["Actual Rows"] ?? 0) + (node["Rows Removed by Filter"] ?? 0) + (node["Rows Removed by Index Recheck"] ?? 0);
    return each * (node["Actual Loops"] ?? 1);
  });
  return {
    rowsTouched: rows.reduce((sum, count) => sum + count, 0),
    blocks: (plan["Shared Hit Blocks"] ?? 0) + (plan["Shared Read Blocks"] ?? 0),
    along: scans.flatMap((node) => (node["Index Name"] ? [`${node["Index Name"]} × ${node["Actual Loops"]}`] : [])),
    readWhole: scans.flatMap((node) => (node["Node Type"] === "Seq Scan" ? [node["Relation Name"] ?? ""] : [])),
  };
}

function nodesOf(plan: PlanNode): PlanNode[] {
  return [plan, ...(plan.Plans ?? []).flatMap(nodesOf)];
}

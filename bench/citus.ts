import { join } from "node:path";
import { joinNodes, nodeNames } from "../faults/citus-cluster.ts";
import { CitusNode, prepareNodes, requireCitus } from "../faults/citus-node.ts";
import { Cleanup, startEnvironment } from "./environment.ts";
import { treeCpuMs } from "./processor.ts";
import { type CalledService, openCalledService } from "./service-rows.ts";
import { median } from "./statistics.ts";

const roundMs = Number(process.env["ROUND_MS"] ?? 3_000);
const rounds = Number(process.env["ROUNDS"] ?? 7);

/** The load of each service in turn. */
const loads = [
  { label: "reports, one by one", what: "completions", batch: 1, callers: 64 },
  { label: "reports, 64 at once", what: "completions", batch: 64, callers: 8 },
  { label: "reports, 100 at once", what: "completions", batch: 100, callers: 8 },
  { label: "Sales", what: "commands", batch: 1, callers: 64 },
] as const;

interface Measured {
  readonly name: string;
  readonly nodes: readonly CitusNode[];
  readonly service: CalledService;
}

interface Sample {
  readonly perS: number;
  /** Processor time of all servers, in microseconds, for each notification that was delivered and recorded. */
  readonly postgresUs: number;
}

async function round({ nodes, service }: Measured, load: (typeof loads)[number]): Promise<Sample> {
  const { process: instance, caller } = service;
  const cpuMs = async () => {
    const each = await Promise.all(nodes.map(async (node) => (await treeCpuMs(await node.pid())) ?? Number.NaN));
    return each.reduce((sum, ms) => sum + ms, 0);
  };
  const { attempts } = await instance.ask("standing", undefined);
  const [startedMs, beforeMs] = [performance.now(), await cpuMs()];
  const { label: _, ...sent } = load;
  const count = await caller.ask("round", { ...sent, durationMs: roundMs });
  await instance.ask("drained", { attempts: attempts + count });
  return {
    perS: (count / (performance.now() - startedMs)) * 1_000,
    postgresUs: (((await cpuMs()) - beforeMs) * 1_000) / count,
  };
}

async function main(cleanup: Cleanup): Promise<void> {
  await requireCitus();
  const around = await startEnvironment(cleanup, { redis: false, postgresSettings: {} });
  const folder = join(around.folder, "nodes");
  await prepareNodes(folder);
  const start = async (name: string, settings: Readonly<Record<string, string>> = {}) => {
    const node = await CitusNode.start(folder, name, settings);
    cleanup.add(() => node.stop());
    return node;
  };
  const alone = await start("alone", { shared_preload_libraries: "''" });
  const nodes: CitusNode[] = [];
  for (const name of nodeNames) nodes.push(await start(name));
  for (const node of nodes) await node.query("CREATE EXTENSION citus");
  await joinNodes(nodes, nodes, "postgres");
  const [coordinator = alone] = nodes;
  const open = (name: string, databaseUrl: string) => openCalledService(around, cleanup, name, { databaseUrl });
  const all: readonly Measured[] = [
    { name: "PostgreSQL alone", nodes: [alone], service: await open("alone", alone.url()) },
    { name: "Citus", nodes, service: await open("citus", coordinator.url()) },
  ];
  for (const load of loads) {
    const samples = all.map((): Sample[] => []);
    for (let nth = 0; nth <= rounds; nth += 1) {
      for (const [at, one] of all.entries()) {
        const sample = await round(one, load);
        // The first one warms up.
        if (nth > 0) samples[at]?.push(sample);
      }
    }
    const figures = samples.map((of, at) => {
      const perS = median(of.map((sample) => sample.perS)).toFixed(0);
      return `${all[at]?.name} ${perS}/s, ${median(of.map(({ postgresUs }) => postgresUs)).toFixed(0)} µs`;
    });
    const [plain = [], citus = []] = samples;
    const ratios = (of: keyof Sample) => median(citus.map((sample, nth) => sample[of] / (plain[nth]?.[of] ?? 0)));
    const [rate, cpu] = [ratios("perS").toFixed(2), ratios("postgresUs").toFixed(2)];
    const ratio = `Citus to alone: rate ${rate}, processor time ${cpu}`;
    process.stdout.write(`${load.label}: ${figures.join("; ")}; ${ratio}\n`);
  }
}

// `npm run bench:citus`: PostgreSQL 15 alone and a coordinator with two workers, in turn, on this machine's processors.
if (import.meta.main) {
  const cleanup = new Cleanup();
  process.once("SIGINT", () => void cleanup.run().then(() => process.exit(130)));
  try {
    await main(cleanup);
  } finally {
    await cleanup.run();
  }
  process.exit(0);
}

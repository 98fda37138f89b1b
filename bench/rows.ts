import type { Cleanup } from "./command.ts";
import type { ContenderMethods, ContenderSetting, RoundOutcome } from "./contender.ts";
import type { BenchEnvironment } from "./environment.ts";
import { installedVersion } from "./install-peers.ts";
import type { Load } from "./load.ts";
import type { RowName } from "./options.ts";
import { type Process, startProcess } from "./processes/channel.ts";

/** One line of the table, opened: it can run rounds. */
export interface Row {
  readonly name: RowName;
  readonly label: string;
  /** The settings of the run, for the reader. */
  readonly setting: string;
  round(load: Load): Promise<RoundOutcome>;
}

/** A row that keeps itself busy in a process of its own, at the best of its settings: the loops, and the peers. */
export interface Contender {
  readonly name: RowName;
  readonly label: string;
  readonly file: URL;
  readonly settings: readonly ContenderSetting[];
  readonly needs?: "database" | "redis";
}

const here = (file: string) => new URL(file, import.meta.url);
const connections = [{ connections: 32 }, { connections: 64 }, { connections: 256 }];

export const contenders: readonly Contender[] = [
  { name: "raw", label: "raw: sign, seal, POST", file: here("processes/raw.ts"), settings: connections },
  {
    name: "plain",
    label: "plain loop: commit, POST, record",
    file: here("processes/plain.ts"),
    settings: connections,
    needs: "database",
  },
  {
    name: "bullmq",
    label: "BullMQ <version> on Redis",
    file: here("peers/bullmq.ts"),
    settings: [
      { batch: 16, concurrency: 64 },
      { batch: 64, concurrency: 128 },
      { batch: 128, concurrency: 256 },
    ],
    needs: "redis",
  },
  {
    name: "graphile-worker",
    label: "graphile-worker <version>",
    file: here("peers/graphile-worker.ts"),
    settings: [
      { batch: 32, concurrency: 32, localQueue: 100 },
      { batch: 64, concurrency: 64, localQueue: 300 },
      { batch: 128, concurrency: 128, localQueue: 500 },
    ],
    needs: "database",
  },
  {
    name: "pg-boss",
    label: "pg-boss <version>",
    file: here("peers/pg-boss.ts"),
    settings: [
      { batch: 64, fetch: 50, loops: 4 },
      { batch: 128, fetch: 100, loops: 4 },
      { batch: 128, fetch: 250, loops: 2 },
    ],
    needs: "database",
  },
];

const warmUpMs = 300;

/** Tries each setting, keeps the best, and leaves it open. */
export async function openContender(
  contender: Contender,
  around: BenchEnvironment,
  cleanup: Cleanup,
  calibrateMs: number,
): Promise<Row> {
  const { name, label, settings } = contender;
  const rates = new Map<ContenderSetting, number>();
  for (const setting of calibrateMs > 0 ? settings : []) {
    const tried = await openOne(contender, around, cleanup, setting, rates.size);
    await tried.ask("round", { durationMs: warmUpMs });
    const { count, elapsedMs } = await tried.ask("round", { durationMs: calibrateMs });
    rates.set(setting, count / elapsedMs);
    await tried.ask("close", undefined);
    await tried.stop();
  }
  const best = [...settings].sort((a, b) => (rates.get(b) ?? 0) - (rates.get(a) ?? 0))[0] ?? {};
  const process = await openOne(contender, around, cleanup, best, settings.length);
  const described = Object.entries(best).map(([option, value]) => `${option} ${value}`);
  const setting = `${described.join(", ")}${calibrateMs > 0 ? `, best of ${settings.length}` : ""}`;
  const shown = label.replace("<version>", (await installedVersion(name)) ?? "");
  return { name, label: shown, setting, round: (load) => process.ask("round", load) };
}

async function openOne(
  contender: Contender,
  around: BenchEnvironment,
  cleanup: Cleanup,
  setting: ContenderSetting,
  index: number,
): Promise<Process<ContenderMethods>> {
  const databaseUrl = contender.needs === "database" ? await around.newDatabase(`${contender.name}-${index}`) : "";
  const process = startProcess<ContenderMethods>(contender.file);
  cleanup.add(() => process.stop());
  const redisSocket = around.redis?.socket ?? "";
  await process.ask("open", { target: around.target, databaseUrl, redisSocket, setting });
  return process;
}

import { readdir, readFile } from "node:fs/promises";

/** Linux counts in hundredths of a second, on every machine that Node runs on. */
const msPerTick = 10;

/**
 * Processor time of a process and all that descend from it, those that ended included, in milliseconds; undefined
 * where there is no /proc.
 */
export async function treeCpuMs(rootPid: number): Promise<number | undefined> {
  const names = await readdir("/proc").catch(() => []);
  const stats = await Promise.all(names.filter((name) => /^\d+$/.test(name)).map(readStat));
  const byParent = new Map<number, Stat[]>();
  for (const stat of stats) if (stat) byParent.set(stat.parentPid, [...(byParent.get(stat.parentPid) ?? []), stat]);
  const root = stats.find((stat) => stat?.pid === rootPid);
  return root && sumOf(root, byParent);
}

function sumOf(stat: Stat, byParent: ReadonlyMap<number, readonly Stat[]>): number {
  const children = byParent.get(stat.pid) ?? [];
  return children.reduce((sum, child) => sum + sumOf(child, byParent), stat.cpuMs);
}

interface Stat {
  readonly pid: number;
  readonly parentPid: number;
  /** Its own, and that of its children that ended. */
  readonly cpuMs: number;
}

async function readStat(pid: string): Promise<Stat | undefined> {
  // It may have ended since it was listed.
  const text = await readFile(`/proc/${pid}/stat`, "utf8").catch(() => "");
  // The name is in parentheses and may contain spaces: the numbers follow it, the state first.
  const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
  if (fields.length < 15) return undefined;
  const ticks = [11, 12, 13, 14].reduce((sum, index) => sum + Number(fields[index]), 0);
  return { pid: Number(pid), parentPid: Number(fields[1]), cpuMs: ticks * msPerTick };
}

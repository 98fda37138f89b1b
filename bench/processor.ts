import { readFile } from "node:fs/promises";

/** Linux counts in hundredths of a second, on every machine that Node runs on. */
const msPerTick = 10;

/**
 * Processor time of a process and all that descend from it, those that ended included, in milliseconds; NaN where there
 * is no /proc.
 */
export async function treeCpuMs(pid: number): Promise<number> {
  try {
    const stat = await readFile(`/proc/${pid}/stat`, "utf8");
    // The name is in parentheses and may contain spaces: the numbers follow it, the state first. The last two are those
    // of children that ended.
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    const ticks = [11, 12, 13, 14].reduce((sum, index) => sum + Number(fields[index]), 0);
    const children = await readFile(`/proc/${pid}/task/${pid}/children`, "utf8");
    const below = await Promise.all(children.split(" ").filter(Boolean).map(Number).map(treeCpuMs));
    // A child may have ended since it was listed.
    return below.reduce((sum, ms) => sum + (Number.isNaN(ms) ? 0 : ms), ticks * msPerTick);
  } catch {
    return Number.NaN;
  }
}

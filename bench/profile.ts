import { readFile } from "node:fs/promises";
import { relative } from "node:path";
import { fileURLToPath } from "node:url";

/** The parts of a .cpuprofile that are needed here. */
interface CpuProfile {
  readonly nodes: readonly {
    readonly id: number;
    readonly callFrame: { readonly functionName: string; readonly url: string; readonly lineNumber: number };
  }[];
  readonly samples: readonly number[];
  readonly timeDeltas: readonly number[];
}

const lines = 40;

/** The functions that took the most time of a process, as lines: percent of the time it was not idle. */
export async function selfTimes(path: string): Promise<string> {
  const profile = JSON.parse(await readFile(path, "utf8")) as CpuProfile;
  const names = new Map(profile.nodes.map(({ id, callFrame }) => [id, nameOf(callFrame)]));
  const selfUs = new Map<string, number>();
  for (const [index, node] of profile.samples.entries()) {
    const name = names.get(node) ?? "";
    selfUs.set(name, (selfUs.get(name) ?? 0) + (profile.timeDeltas[index] ?? 0));
  }
  selfUs.delete("(idle)");
  const busyUs = [...selfUs.values()].reduce((sum, us) => sum + us, 0);
  return [...selfUs]
    .sort(([, a], [, b]) => b - a)
    .slice(0, lines)
    .map(([name, us]) => `${((us / busyUs) * 100).toFixed(1).padStart(6)} %  ${name}`)
    .join("\n");
}

function nameOf({ functionName, url, lineNumber }: CpuProfile["nodes"][number]["callFrame"]): string {
  const name = functionName === "" ? "(anonymous)" : functionName;
  if (url === "") return name;
  const file = url.startsWith("file:") ? relative(process.cwd(), fileURLToPath(url)) : url;
  return `${name}  ${file}:${lineNumber + 1}`;
}

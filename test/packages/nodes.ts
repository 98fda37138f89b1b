import { existsSync, realpathSync } from "node:fs";
import { delimiter, join } from "node:path";
import { run } from "./project.ts";

export interface NodeFound {
  readonly path: string;
  readonly version: string;
}

/** The Node that runs the tests, and every other one in PATH that the packages promise to run on. */
export async function findNodes(path: string): Promise<NodeFound[]> {
  const found = new Map([[process.versions.node, process.execPath]]);
  for (const directory of path.split(delimiter)) {
    const candidate = join(directory, "node");
    if (directory === "" || directory.includes("node_modules") || !existsSync(candidate)) continue;
    const { stdout } = await run(candidate, ["-p", "process.versions.node"]);
    if (isPromised(stdout.trim()) && !found.has(stdout.trim())) found.set(stdout.trim(), realpathSync(candidate));
  }
  return [...found].map(([version, executable]) => ({ version, path: executable }));
}

/** Node 20.19 and later: from there on `require` takes an ES module. */
function isPromised(version: string): boolean {
  const [major = 0, minor = 0] = version.split(".").map(Number);
  return major > 22 || (major === 22 && minor >= 12) || (major === 20 && minor >= 19);
}

/** Whether a package that asks for `range` (as in ">=22.18") says that it runs on this Node. */
export function runsOn(range: string, { version }: NodeFound): boolean {
  const [, wantedMajor = "", wantedMinor = "0"] = /^>=(\d+)(?:\.(\d+))?$/.exec(range) ?? [];
  if (wantedMajor === "") throw new Error(`"${range}" is not a range this test can read`);
  const [major = 0, minor = 0] = version.split(".").map(Number);
  return major > Number(wantedMajor) || (major === Number(wantedMajor) && minor >= Number(wantedMinor));
}

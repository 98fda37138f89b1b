import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { join } from "node:path";

const peers = join(import.meta.dirname, "peers");

interface Manifest {
  readonly version: string;
  readonly dependencies?: Readonly<Record<string, string>>;
}

/** The version of a peer that is installed; undefined where it is not. */
export async function installedVersion(name: string): Promise<string | undefined> {
  const manifest = await readManifest(join(peers, "node_modules", name)).catch(() => undefined);
  return manifest?.version;
}

/**
 * Installs the peers where they are missing, or are not those of bench/peers/package.json. They are a project of their
 * own, because nobody but the bench needs them.
 *
 * @throws Error telling what to run when npm fails
 */
export async function installPeers(note: (line: string) => void): Promise<void> {
  const { dependencies = {} } = await readManifest(peers);
  const names = Object.keys(dependencies);
  const versions = await Promise.all(names.map(installedVersion));
  if (names.every((name, nth) => dependencies[name] === versions[nth])) return;
  note(`installing ${names.join(", ")} into bench/peers, once`);
  // npm's own words go to stderr: stdout is the bench's table.
  const npm = spawn("npm", ["ci", "--prefer-offline", "--prefix", peers], { cwd: peers, stdio: ["ignore", 2, 2] });
  const [exitCode] = await once(npm, "exit");
  if (exitCode !== 0) throw new Error("The peers were not installed: run npm ci --prefix bench/peers, then the bench.");
}

async function readManifest(folder: string): Promise<Manifest> {
  return JSON.parse(await readFile(join(folder, "package.json"), "utf8")) as Manifest;
}

import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, renameSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { pathOf } from "./programs.ts";

const cache = join(process.env["XDG_CACHE_HOME"] ?? join(homedir(), ".cache"), "paybell/java");
const plugin = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:build-classpath";
const fetchTimeoutMs = 880_000;

/** Where what was made of these files is kept on this machine: another place for other contents. */
export function keptFor(files: readonly string[]): string {
  const hash = createHash("sha256");
  for (const file of files) hash.update(readFileSync(file));
  mkdirSync(cache, { recursive: true });
  return join(cache, hash.digest("hex").slice(0, 16));
}

/** The class path of a POM. Maven fetches it, where that was not done before. @returns undefined if it cannot */
export function classpathOf(pom: string): string | undefined {
  const file = keptFor([pom]);
  const known = existsSync(file) ? readFileSync(file, "utf8").trim() : "";
  if (known.split(":").every((jar) => existsSync(jar))) return known;
  // Several processes may fetch at once: each makes its own, and puts it in its place in one step.
  const own = `${file}-${process.pid}`;
  const maven = ["-B", "-q", "-f", pom, plugin, `-Dmdep.outputFile=${own}`];
  const { status } = spawnSync(pathOf("maven"), maven, { encoding: "utf8", timeout: fetchTimeoutMs });
  if (status !== 0) return undefined;
  renameSync(own, file);
  return readFileSync(file, "utf8").trim();
}

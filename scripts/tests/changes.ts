import { spawnSync } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";

/** The difference from the last commit that passed. */
export interface Changes {
  readonly since: string;
  readonly paths: readonly string[];
}

/**
 * Compares the work tree with the commit that `record` names. Undefined when there is no record, or when its commit is
 * not in this history: then nothing is known to be unchanged.
 */
export function changesSince(record: string, root: string): Changes | undefined {
  const since = readCommit(record);
  if (since === undefined || git(root, "merge-base", "--is-ancestor", since, "HEAD") === undefined) return undefined;
  const changed = git(root, "diff", "--name-only", "--no-renames", "-z", since);
  const added = git(root, "ls-files", "--others", "--exclude-standard", "-z");
  if (changed === undefined || added === undefined) return undefined;
  return { since, paths: `${changed}${added}`.split("\0").filter((path) => path !== "") };
}

/** Notes that this commit passed. A work tree that differs from its commit is none, and is not noted. */
export function recordPassed(record: string, root: string): void {
  const head = git(root, "rev-parse", "HEAD");
  if (head === undefined || git(root, "status", "--porcelain") !== "") return;
  mkdirSync(dirname(record), { recursive: true });
  writeFileSync(record, head);
}

function readCommit(record: string): string | undefined {
  try {
    return /^[0-9a-f]{40,64}$/m.exec(readFileSync(record, "utf8"))?.[0];
  } catch {
    return undefined;
  }
}

/** The output of git; undefined if it fails. */
export function git(cwd: string, ...args: string[]): string | undefined {
  const { status, stdout } = spawnSync("git", args, { cwd, encoding: "utf8", maxBuffer: 64 * 1_024 * 1_024 });
  return status === 0 ? stdout : undefined;
}

import { spawnSync } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { listTree } from "../sources/files.ts";
import { isInput, type Tier, tierOf, tiers } from "./tiers.ts";

/** The tests of a run, and why these. */
export interface Selection {
  readonly leftOut: readonly Tier[];
  /** For the reader: a run never leaves a test out in silence. */
  readonly words: string;
  /** The only files to run. Default: those that are not left out. */
  readonly files?: readonly string[];
}

export function selectAll(words: string): Selection {
  return { leftOut: [], words };
}

/** The core. */
export function selectCore(root: string): Selection {
  return { leftOut: tiers, words: `The core is run; npm run test:all runs the rest.${describeLeftOut(tiers, root)}` };
}

/** These tiers, and their files. @throws Error if one does not exist */
export function selectTiers(names: readonly string[], root: string): Selection {
  const unknown = names.filter((name) => tiers.every((tier) => tier.name !== name));
  if (names.length === 0 || unknown.length > 0) {
    throw new Error(`--tier takes names of tiers: ${tiers.map(({ name }) => name).join(", ")}`);
  }
  const chosen = tiers.filter(({ name }) => names.includes(name));
  return { ...selectAll(`Only what was named is run: ${names.join(", ")}.`), files: filesOf(chosen, root) };
}

/** Each tier that tests what has changed, without the core. Every tier if it is not known what has. */
export function selectChanged(changes: Changes | undefined, root: string): Selection {
  if (changes === undefined) {
    const words = "Every tier is run: no commit of this history is known to have passed.";
    return { ...selectAll(words), files: filesOf(tiers, root) };
  }
  const isChanged = (tier: Tier) => changes.paths.some((path) => isInput(tier, path));
  const leftOut = tiers.filter((tier) => !isChanged(tier));
  const why = `The tiers are run that test something changed since ${changes.since.slice(0, 10)}, which passed.`;
  return { leftOut, words: `${why}${describeLeftOut(leftOut, root)}`, files: filesOf(tiers.filter(isChanged), root) };
}

function filesOf(chosen: readonly Tier[], root: string): readonly string[] {
  return testFiles(root).filter((path) => chosen.some((tier) => tierOf(path) === tier));
}

function describeLeftOut(leftOut: readonly Tier[], root: string): string {
  if (leftOut.length === 0) return "";
  const named = leftOut.map((tier) => `${tier.name} (${filesOf([tier], root).length})`).join(", ");
  return `\nNot run, by tier and number of files: ${named}.`;
}

/** Every test file of the project. */
export function testFiles(root: string): string[] {
  return listTree(root).files.filter((path) => /\.test\.tsx?$/.test(path));
}

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

import { listTree } from "../sources/files.ts";
import type { Changes } from "./changes.ts";
import { isInput, type Tier, tierOf, tiers } from "./tiers.ts";

/** The tests that a run leaves out, and why. */
export interface Selection {
  readonly leftOut: readonly Tier[];
  /** Test files in them. */
  readonly filesLeftOut: number;
  /** For the reader: a run never leaves a test out in silence. */
  readonly words: string;
  /** The only files to run. Default: those that are not left out. */
  readonly files?: readonly string[];
}

export function selectAll(words: string): Selection {
  return { leftOut: [], filesLeftOut: 0, words };
}

/** These tiers, and their files. @throws Error if one does not exist */
export function selectTiers(names: readonly string[], root: string): Selection {
  const unknown = names.filter((name) => tiers.every((tier) => tier.name !== name));
  if (names.length === 0 || unknown.length > 0) {
    throw new Error(`--tier takes names of tiers: ${tiers.map(({ name }) => name).join(", ")}`);
  }
  const files = testFiles(root).filter((path) => names.includes(tierOf(path)?.name ?? ""));
  return { ...selectAll(`Only what was named is run: ${names.join(", ")}.`), files };
}

/** The core. */
export function selectCore(root: string): Selection {
  return leaveOut(tiers, root, "The core is run; npm run test:all runs the rest.");
}

/** The core, and each tier that tests what has changed. Everything, where it is not known what has. */
export function selectChanged(changes: Changes | undefined, root: string): Selection {
  if (changes === undefined) return selectAll("Everything is run: no commit of this history is known to have passed.");
  const unchanged = tiers.filter((tier) => !changes.paths.some((path) => isInput(tier, path)));
  const since = changes.since.slice(0, 10);
  if (unchanged.length === 0) return selectAll(`Everything is run: each tier tests something changed since ${since}.`);
  return leaveOut(unchanged, root, `What has not changed since ${since}, which passed, is not tested again.`);
}

function leaveOut(leftOut: readonly Tier[], root: string, why: string): Selection {
  const files = testFiles(root);
  const counted = leftOut.map((tier) => ({ name: tier.name, files: files.filter((path) => tierOf(path) === tier) }));
  const named = counted.map(({ name, files: { length } }) => `${name} (${length})`).join(", ");
  const filesLeftOut = counted.reduce((sum, { files: { length } }) => sum + length, 0);
  const words = `${why}\nSkipped, by tier and number of files: ${named}. Each file counts as one skipped.`;
  return { leftOut, filesLeftOut, words };
}

/** Every test file of the project. */
export function testFiles(root: string): string[] {
  return listTree(root).files.filter((path) => /\.test\.tsx?$/.test(path));
}

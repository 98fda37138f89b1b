import { spawnSync } from "node:child_process";
import { hash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
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

/** The core, and each tier but those that have passed with the same inputs. */
export function selectChanged(passed: readonly Tier[], root: string): Selection {
  const why = "The core is run, and each tier that has not passed with the same inputs on this machine.";
  return { leftOut: passed, words: `${why}${describeLeftOut(passed, root)}` };
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

/** With which inputs each tier has passed: `folder` has a file for each tier, a line for each hash, the latest first. */
export class TierRecord {
  readonly #folder: string;
  readonly #root: string;
  readonly #hashes: ReadonlyMap<Tier, string>;

  constructor(folder: string, root: string) {
    this.#folder = folder;
    this.#root = root;
    this.#hashes = hashInputs(root);
  }

  /** The tiers that have passed with the inputs of the moment when this was made. */
  passed(): readonly Tier[] {
    return [...this.#hashes].filter(([tier, now]) => this.#read(tier).includes(now)).map(([tier]) => tier);
  }

  /** Of a tier whose inputs were edited since then, it is not known with which of them it was run. */
  note(passed: readonly Tier[]): void {
    const now = hashInputs(this.#root);
    mkdirSync(this.#folder, { recursive: true });
    for (const tier of passed) {
      const inputs = this.#hashes.get(tier);
      if (inputs === undefined || inputs !== now.get(tier)) continue;
      const lines = [inputs, ...this.#read(tier).filter((line) => line !== inputs)];
      writeFileSync(join(this.#folder, tier.name), `${lines.slice(0, hashesKept).join("\n")}\n`);
    }
  }

  #read({ name }: Tier): readonly string[] {
    const file = join(this.#folder, name);
    return existsSync(file) ? readFileSync(file, "utf8").trimEnd().split("\n") : [];
  }
}

/** Branches that take turns on a machine. */
const hashesKept = 50;

/** Of the paths and contents of each tier's inputs, edited and added files included; of none where git knows no files. */
function hashInputs(root: string): ReadonlyMap<Tier, string> {
  const listed = git(root, "ls-files", "--cached", "--others", "--exclude-standard", "-z");
  if (listed === undefined) return new Map();
  const paths = [...new Set(listed.split("\0"))].filter((path) => path !== "" && existsSync(join(root, path)));
  const files = paths.sort().map((path) => ({ path, hash: hash("sha256", readFileSync(join(root, path))) }));
  return new Map(
    tiers.map((tier) => {
      const inputs = files.filter(({ path }) => isInput(tier, path));
      return [tier, hash("sha256", JSON.stringify(inputs))];
    }),
  );
}

/** The output of git; undefined if it fails. */
export function git(cwd: string, ...args: string[]): string | undefined {
  const { status, stdout } = spawnSync("git", args, { cwd, encoding: "utf8", maxBuffer: 64 * 1_024 * 1_024 });
  return status === 0 ? stdout : undefined;
}

import { execFile } from "node:child_process";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
} from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { inject } from "vitest";
import { extractCommit, releasedVersions } from "../../scripts/release.ts";
import { git } from "../../scripts/tests/selection.ts";
import { withAdmin } from "../support/database.ts";

const root = join(import.meta.dirname, "../..");
const cache = join(process.env["XDG_CACHE_HOME"] ?? join(homedir(), ".cache"), "paybell/releases");
const unusedMs = 3_600_000;
/** An arbitrary number: test files that need the same installation take turns. */
const installLock = 7_420_002;

export interface OldVersion {
  /** Such as 0.1.0. */
  readonly name: string;
  /** Its name in the titles of tests, with the reason if they are skipped. */
  readonly title: string;
  /** Undefined if it is not in this history. */
  readonly commit: string | undefined;
}

/** The version that is upgraded: the newest release in this history or, before the first, this commit. */
export function findOldVersion(): OldVersion {
  const [newest] = findReleases();
  return newest ?? titled("unreleased", git(root, "rev-parse", "HEAD"));
}

/**
 * Every release, the newest first. Each is found by its tag, or by the subject of its commit, because a clone may lack the tags.
 *
 * @throws Error if the whole history is here and a release is not in it
 */
export function findReleases(): readonly OldVersion[] {
  return releasedVersions(readFileSync(join(root, "CHANGELOG.md"), "utf8")).map(findRelease);
}

function findRelease(released: string): OldVersion {
  const subject = `^release: ${released.replaceAll(".", "\\.")}$`;
  const found =
    git(root, "rev-parse", "--verify", "--quiet", `refs/tags/v${released}^{commit}`) ||
    git(root, "log", "-1", "--format=%H", `--grep=${subject}`);
  if (!found && git(root, "rev-parse", "--is-shallow-repository")?.trim() === "false")
    throw new Error(`CHANGELOG.md has ${released}, and no tag or commit in this history is its release`);
  return titled(released, found);
}

function titled(name: string, found: string | undefined): OldVersion {
  const commit = found?.trim() || undefined;
  return { name, commit, title: commit === undefined ? `${name} (skipped: this clone lacks its commit)` : name };
}

/** Its checkout, installed as its users install it, once for each commit on this machine. */
export async function installOldVersion({ name, commit = "" }: OldVersion): Promise<string> {
  const versions = join(cache, name);
  const tree = join(versions, commit);
  await withAdmin(inject("databaseServerUrl"), async (client) => {
    await client.query("SELECT pg_advisory_lock($1)", [installLock]);
    if (!existsSync(tree)) await install(versions, commit);
  });
  utimesSync(tree, new Date(), new Date());
  return tree;
}

async function install(versions: string, commit: string): Promise<void> {
  mkdirSync(versions, { recursive: true });
  // Before the first release each commit is a version: those that no run needs take space.
  for (const other of readdirSync(versions).map((name) => join(versions, name)))
    if (Date.now() - statSync(other).mtimeMs > unusedMs) rmSync(other, { recursive: true });
  const staging = mkdtempSync(join(versions, "installing-"));
  try {
    const tree = join(staging, "tree");
    extractCommit(root, commit, tree);
    await promisify(execFile)("npm", ["ci", "--omit=dev", "--no-audit", "--no-fund", "--prefer-offline"], {
      cwd: tree,
    });
    // Another run on this machine may have been faster.
    if (!existsSync(join(versions, commit))) renameSync(tree, join(versions, commit));
  } finally {
    rmSync(staging, { recursive: true });
  }
}

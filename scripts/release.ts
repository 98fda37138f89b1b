import { execFileSync } from "node:child_process";
import { hash } from "node:crypto";
import {
  existsSync,
  globSync,
  mkdirSync,
  mkdtempDisposableSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { listPackages } from "./build/packages.ts";
import { sbomOf } from "./build.ts";
import { packPackages } from "./pack.ts";
import { git } from "./tests/selection.ts";

/** Files that name the version, beside the manifests of npm: those of the image and the other languages, and pages. */
const namingVersion = [
  "clients/go/paybell.go",
  "clients/java/pom.xml",
  "clients/java/example/pom.xml",
  "clients/python/pyproject.toml",
  "docs/operator/deploy.md",
  "docs/partner/quickstart-java.md",
  "docs/partner/quickstart-php.md",
  "docs/partner/quickstart-python.md",
  "ops/helm/paybell/Chart.yaml",
];

/** What stands before it there: in JSON a name of ours, or that of what depends on us. */
const beforeVersion = [
  /"name": "(?:paybell|paybell-repository|@paybell\/\w+)",\s+"version": "/,
  /"(?:paybell|@paybell\/\w+)": "/,
  /<artifactId>paybell<\/artifactId>\s*<version>/,
  /^(?:const V|appV|v)ersion(?: =|:) "?/,
  /\bpaybell[-:]/,
];

export interface Release {
  readonly version: string;
  /** Its date in the changelog, as YYYY-MM-DD. */
  readonly day: string;
  /** Changes nothing in the repository. */
  readonly isDry: boolean;
}

/**
 * Writes the packages, SBOM, checksums and notes of a version into `dist/release/<version>`. Then, unless it is a dry
 * run, writes the version into the repository, commits and tags it.
 *
 * @param pack builds the packages of a tree; a test of what follows has its own
 * @returns the commands that publish it
 * @throws Error if it is refused
 */
export async function release(
  root: string,
  { version, day, isDry }: Release,
  pack: typeof packPackages = buildAndPack,
): Promise<readonly string[]> {
  const problem = refusalOf(root, version);
  if (problem !== undefined) throw new Error(problem);
  const output = join(root, "dist/release", version);
  rmSync(output, { recursive: true, force: true });
  mkdirSync(output, { recursive: true });
  using folder = mkdtempDisposableSync(join(tmpdir(), "paybell-release-"));
  // From a copy of the commit: nothing enters that git does not have, and a failure leaves the repository unchanged.
  const tree = join(folder.path, "paybell");
  extractCommit(root, "HEAD", tree);
  symlinkSync(realpathSync(join(root, "node_modules")), join(tree, "node_modules"));
  const notes = writeVersion(tree, version, day);
  const packed = await pack(tree, { staging: join(folder.path, "staging"), destination: output });
  writeFileSync(join(output, "sbom.cdx.json"), await sbomOf(tree, listPackages(tree)));
  writeFileSync(join(output, "notes.md"), notes);
  const sums = readdirSync(output).map((name) => `${sha256(join(output, name))}  ${name}\n`);
  writeFileSync(join(output, "SHA256SUMS"), sums.join(""));
  if (!isDry) {
    writeVersion(root, version, day);
    execFileSync("git", ["commit", "--quiet", "--all", "--message", `release: ${version}`], { cwd: root });
    execFileSync("git", ["tag", "--annotate", "--message", version, `v${version}`], { cwd: root });
  }
  const publish = packed.map(({ tarball }) => `npm publish --access public ./${relative(root, tarball)}`);
  return [`git push origin main v${version}`, ...publish];
}

const buildAndPack: typeof packPackages = (tree, folders) => {
  execFileSync(process.execPath, [join(tree, "scripts/pages.js")]);
  return packPackages(tree, folders);
};

function refusalOf(root: string, version: string): string | undefined {
  if (!/^\d+\.\d+\.\d+$/.test(version)) return `${version} is not a version such as 1.2.3`;
  const branch = git(root, "branch", "--show-current")?.trim();
  if (branch !== "main") return `the branch is ${branch || "none"}: a release is made on main`;
  if (git(root, "status", "--porcelain") !== "") return "the work tree differs from its commit: commit or stash first";
  if (git(root, "tag", "--list", `v${version}`) !== "") return `the tag v${version} exists`;
  const changelog = readFileSync(join(root, "CHANGELOG.md"), "utf8");
  const last = lastReleased(changelog);
  if (last !== undefined && last.localeCompare(version, "en", { numeric: true }) >= 0)
    return `${version} is not newer than ${last}, the last version in CHANGELOG.md`;
  if (notesOf(changelog).replace(/^#.*$/gm, "").trim() === "") return 'CHANGELOG.md has nothing under "## Unreleased"';
  return undefined;
}

/** The newest version with a date in the changelog; undefined before the first release. */
export function lastReleased(changelog: string): string | undefined {
  return releasedVersions(changelog)[0];
}

/** The versions with a date in the changelog, the newest first. */
export function releasedVersions(changelog: string): readonly string[] {
  return [...changelog.matchAll(/^## (\d+\.\d+\.\d+), \d{4}-\d{2}-\d{2}$/gm)].map(([, version = ""]) => version);
}

/** The section of the changelog that collects the next version's lines. */
function notesOf(changelog: string): string {
  const section = changelog.split(/^(?=## )/m).find((one) => one.startsWith("## Unreleased\n")) ?? "";
  return `${section.replace("## Unreleased\n", "").trim()}\n`;
}

/** Writes a commit's files into a new folder. @param paths the only ones; default: all */
export function extractCommit(root: string, commit: string, folder: string, paths: readonly string[] = []): void {
  mkdirSync(folder, { recursive: true });
  const archive = `${folder}.tar`;
  execFileSync("git", ["archive", `--output=${archive}`, commit, ...paths], { cwd: root });
  execFileSync("tar", ["-xf", archive, "-C", folder]);
  rmSync(archive);
}

/** Writes the version into the changelog and every file that names it. @returns the release notes */
function writeVersion(tree: string, version: string, day: string): string {
  const read = (path: string) => readFileSync(join(tree, path), "utf8");
  const { version: previous } = JSON.parse(read("package.json"));
  const notes = notesOf(read("CHANGELOG.md"));
  const released = read("CHANGELOG.md").replace("## Unreleased\n", `## Unreleased\n\n## ${version}, ${day}\n`);
  writeFileSync(join(tree, "CHANGELOG.md"), released);
  const before = beforeVersion.map(({ source }) => source).join("|");
  const named = new RegExp(`(${before})${previous.replaceAll(".", "\\.")}(?!\\d)`, "gm");
  const manifests = ["package.json", "package-lock.json", ...globSync("packages/*/package.json", { cwd: tree })];
  for (const path of [...manifests, ...namingVersion])
    writeFileSync(join(tree, path), read(path).replace(named, `$1${version}`));
  return notes;
}

/** Undefined: there is no such file. */
function sha256(path: string): string | undefined {
  return existsSync(path) ? hash("sha256", readFileSync(path)) : undefined;
}

/** Makes the packages of a tree again. */
export type Repack = (...given: Parameters<typeof packPackages>) => Promise<unknown>;

/**
 * Compares a release with the commit that is checked out here: each file with its checksum, each package with
 * the same package built again, and the SBOM with the lock file.
 *
 * @returns a sentence for each difference; empty: it comes from this commit
 */
export async function differencesOf(root: string, released: string, repack: Repack = packPackages): Promise<string[]> {
  const read = (name: string) => readFileSync(join(released, name), "utf8");
  const lines = read("SHA256SUMS").trimEnd().split("\n");
  const sums = new Map(lines.map((line) => [line.slice(66), line.slice(0, 64)] as const));
  const names = new Set([...sums.keys(), ...readdirSync(released).filter((name) => name !== "SHA256SUMS")]);
  const problems = [...names].flatMap((name) => {
    const sum = sha256(join(released, name));
    return sum === sums.get(name) ? [] : [`${name} is ${sum === undefined ? "missing" : "not what SHA256SUMS says"}`];
  });
  using folder = mkdtempDisposableSync(join(tmpdir(), "paybell-verify-"));
  const destination = join(folder.path, "packed");
  await repack(root, { staging: join(folder.path, "staging"), destination });
  const packages = new Set([...names, ...readdirSync(destination)].filter((name) => name.endsWith(".tgz")));
  for (const name of packages)
    if (sha256(join(released, name)) !== sha256(join(destination, name)))
      problems.push(`${name} is not the package of this commit`);
  if (componentsOf(read("sbom.cdx.json")) !== componentsOf(await sbomOf(root, listPackages(root))))
    problems.push("sbom.cdx.json does not list what the lock file has");
  return problems;
}

/** Without the time and the random number of the document. */
function componentsOf(sbom: string): string {
  const { components, dependencies } = JSON.parse(sbom) as { components: unknown; dependencies: unknown };
  return JSON.stringify([components, dependencies]);
}

// `npm run release -- [X.Y.Z] [--dry-run]`: without a version, that of package.json, which is right for the first.
// `npm run release:verify -- <folder>`, in a checkout of the release's tag.
if (import.meta.main) {
  const root = join(import.meta.dirname, "..");
  const given = process.argv.slice(2);
  try {
    if (given[0] === "--verify") await verify(root, given[1]);
    else await releaseAndTell(root, given);
  } catch (error) {
    process.stderr.write(`release: ${error instanceof Error ? error.message : String(error)}\n`);
    process.exitCode = 1;
  }
}

async function releaseAndTell(root: string, given: readonly string[]): Promise<void> {
  const [named] = given.filter((argument) => argument !== "--dry-run");
  const isDry = given.includes("--dry-run");
  const version = named ?? JSON.parse(readFileSync(join(root, "package.json"), "utf8")).version;
  const commands = await release(root, { version, day: new Date().toISOString().slice(0, 10), isDry });
  const done = isDry ? "and nothing else: this was a dry run" : "and the version is committed and tagged";
  process.stdout.write(`dist/release/${version} is written, ${done}.\n`);
  process.stdout.write(`Nothing is published. To publish it:\n\n${commands.join("\n")}\n`);
}

async function verify(root: string, folder: string | undefined): Promise<void> {
  if (folder === undefined) throw new Error("name the folder of the release: npm run release:verify -- <folder>");
  const problems = await differencesOf(root, folder);
  for (const problem of problems) process.stdout.write(`${problem}\n`);
  if (problems.length === 0)
    process.stdout.write(`${folder} is what this commit gives: packages, SBOM and checksums.\n`);
  process.exitCode = problems.length === 0 ? 0 : 1;
}

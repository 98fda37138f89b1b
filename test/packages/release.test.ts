import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { packPackages } from "../../scripts/pack.ts";
import { extractCommit, lastReleased, release } from "../../scripts/release.ts";
import { repository } from "./project.ts";

const day = "2031-05-06";
const manifests = ["package.json", ...["cli", "console", "contract", "partner", "server"].map(manifestOf)];
let clone = "";

function manifestOf(name: string): string {
  return `packages/${name}/package.json`;
}

function git(...args: string[]): string {
  return execFileSync("git", args, { cwd: clone, encoding: "utf8" }).trim();
}

const read = (path: string) => readFileSync(join(clone, path), "utf8");
const readJson = (path: string) => JSON.parse(read(path));

/** Everything that a release could change: the commit, the tags and the work tree. */
const state = () => [git("rev-parse", "HEAD"), git("tag", "--list"), git("status", "--porcelain")];

/** Makes the folder a repository of one commit on main, with this section of unreleased lines. */
function begin(folder: string, unreleased: string): void {
  clone = folder;
  git("init", "--quiet", "--initial-branch=main");
  git("config", "user.name", "a");
  git("config", "user.email", "a@b.example");
  writeFileSync(join(clone, ".git/info/exclude"), "node_modules\n");
  const section = `## Unreleased\n\n${unreleased}\n`;
  writeFileSync(join(clone, "CHANGELOG.md"), `# Changelog\n\n${section}## 0.9.0, 2031-01-02\n\n- A door.\n`);
  git("add", "--all");
  git("commit", "--quiet", "--message", "everything");
}

describe("a release", () => {
  let folder = "";
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), "paybell-release-test-"));
    const copy = join(folder, "copy");
    extractCommit(repository, "HEAD", copy);
    symlinkSync(realpathSync(join(repository, "node_modules")), join(copy, "node_modules"));
    begin(copy, "The next one.\n\n### Added\n\n- A bell.\n");
  });
  afterAll(() => rmSync(folder, { recursive: true }));

  test("writes packages, SBOM, checksums and notes, and a dry run changes nothing else", async () => {
    const before = state();
    // Without the code: packages.test.ts compiles and uses it.
    const commands = await release(clone, { version: "0.10.0", day, isDry: true }, (tree, folders) =>
      packPackages(tree, folders, async () => undefined),
    );
    expect(state()).toEqual(before);

    const output = join(clone, "dist/release/0.10.0");
    const tarballs = ["paybell", "paybell-contract", "paybell-partner", "paybell-server"].map(
      (name) => `${name}-0.10.0.tgz`,
    );
    expect(readdirSync(output).sort()).toEqual(["SHA256SUMS", "notes.md", ...tarballs, "sbom.cdx.json"].sort());
    expect(readFileSync(join(output, "notes.md"), "utf8")).toBe("The next one.\n\n### Added\n\n- A bell.\n");
    const sums = readFileSync(join(output, "SHA256SUMS"), "utf8").trimEnd().split("\n");
    expect(sums.map((line) => line.slice(66)).sort()).toEqual(["notes.md", ...tarballs, "sbom.cdx.json"].sort());
    for (const line of sums) {
      const bytes = readFileSync(join(output, line.slice(66)));
      expect(line.slice(0, 66)).toBe(`${createHash("sha256").update(bytes).digest("hex")}  `);
    }
    const sbom = JSON.parse(readFileSync(join(output, "sbom.cdx.json"), "utf8"));
    const components = sbom.components.map(({ purl }: { purl: string }) => purl);
    const expected = ["pkg:npm/%40paybell/server@0.10.0", expect.stringMatching(/^pkg:npm\/fastify@/)];
    expect(components).toEqual(expect.arrayContaining(expected));
    const packed = execFileSync("tar", ["-xzOf", join(output, "paybell-0.10.0.tgz"), "package/package.json"], {
      encoding: "utf8",
    });
    expect(JSON.parse(packed)).toMatchObject({ version: "0.10.0", dependencies: { "@paybell/contract": "0.10.0" } });
    expect(commands).toEqual([
      "git push origin main v0.10.0",
      ...["paybell-contract", "paybell-partner", "paybell-server", "paybell"].map(
        (name) => `npm publish --access public ./dist/release/0.10.0/${name}-0.10.0.tgz`,
      ),
    ]);
  });

  test("commits the version in all packages, lock file, changelog and image's tag, and tags it", async () => {
    const output = join(clone, "dist/release/0.10.0");
    // The dry run has shown what is packed.
    await release(clone, { version: "0.10.0", day, isDry: false }, async (tree, { destination }) => {
      writeFileSync(join(destination, "packed"), readFileSync(join(tree, "packages/cli/package.json")));
      return [];
    });
    expect(readdirSync(output).sort()).toEqual(["SHA256SUMS", "notes.md", "packed", "sbom.cdx.json"]);
    expect(JSON.parse(readFileSync(join(output, "packed"), "utf8"))).toMatchObject({ version: "0.10.0" });
    expect(git("log", "-1", "--format=%s")).toBe("release: 0.10.0");
    expect(git("rev-parse", "v0.10.0^{commit}")).toBe(git("rev-parse", "HEAD"));
    expect(git("status", "--porcelain")).toBe("");
    expect(git("diff", "--name-only", "HEAD~1").split("\n").sort()).toEqual(
      [
        "CHANGELOG.md",
        "clients/go/paybell.go",
        "clients/java/example/pom.xml",
        "clients/java/pom.xml",
        "clients/python/pyproject.toml",
        "docs/operator/deploy.md",
        "docs/partner/quickstart-java.md",
        "docs/partner/quickstart-php.md",
        "docs/partner/quickstart-python.md",
        "ops/helm/paybell/Chart.yaml",
        "package-lock.json",
        ...manifests,
      ].sort(),
    );
    for (const page of ["java", "php", "python"]) {
      const shown = read(`docs/partner/quickstart-${page}.md`).match(/(?<=paybell[-:])\d+\.\d+\.\d+/g);
      expect(new Set(shown), page).toEqual(new Set(["0.10.0"]));
    }
    expect(read("CHANGELOG.md")).toContain(`## Unreleased\n\n## 0.10.0, ${day}\n\nThe next one.\n`);
    expect(lastReleased(read("CHANGELOG.md"))).toBe("0.10.0");
    const own = new Set(manifests.map((path) => readJson(path).name));
    const { packages } = readJson("package-lock.json");
    for (const path of manifests) {
      const inLock = packages[path.replace(/\/?package\.json$/, "")];
      for (const one of [readJson(path), inLock]) {
        const versions = {
          ...one.dependencies,
          ...one.optionalDependencies,
          ...one.peerDependencies,
          [one.name]: one.version,
        };
        for (const [name, version] of Object.entries(versions))
          if (own.has(name)) expect(version, `${path} ${name}`).toBe("0.10.0");
      }
    }
    // npm agrees with the lock file: it would install just this.
    execFileSync("npm", ["ci", "--dry-run", "--offline"], { cwd: clone, stdio: "pipe" });
  });

  test("is refused by the command in one line, with the exit code 1", () => {
    const script = join(clone, "scripts/release.ts");
    const run = () => execFileSync(process.execPath, [script, "--dry-run"], { encoding: "utf8", stdio: "pipe" });
    const refused = { status: 1, stderr: "release: the tag v0.10.0 exists\n" };
    expect(run).toThrow(expect.objectContaining(refused));
  });
});

describe("a release is refused", () => {
  const started = (unreleased: string) => {
    const folder = mkdtempSync(join(tmpdir(), "paybell-refused-"));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    begin(folder, unreleased);
  };
  const next = () => git("switch", "--quiet", "--create", "next");
  const edit = () => writeFileSync(join(clone, "new.md"), "");
  const empty = () => {
    rmSync(join(clone, ".git"), { recursive: true });
    begin(clone, "### Added\n");
  };
  const refused: readonly (readonly [string, string, RegExp, () => unknown])[] = [
    ["on another branch than main", "0.10.0", /^the branch is next: /, next],
    ["with a file that is not committed", "0.10.0", /^the work tree differs/, edit],
    ["for a tag that exists", "0.10.0", /^the tag v0\.10\.0 exists$/, () => git("tag", "v0.10.0")],
    ["for the last version", "0.9.0", /^0\.9\.0 is not newer than 0\.9\.0, /, () => undefined],
    ["for an older version", "0.8.10", /^0\.8\.10 is not newer than 0\.9\.0, /, () => undefined],
    ["for what is not a version", "v1", /^v1 is not a version/, () => undefined],
    ["without lines in the changelog", "0.10.0", /nothing under "## Unreleased"$/, empty],
  ];

  test.each(refused)("%s", async (_, version, words, prepare) => {
    started("- A bell.\n");
    prepare();
    const before = state();
    await expect(release(clone, { version, day, isDry: false })).rejects.toThrow(words);
    expect(state()).toEqual(before);
    expect(readdirSync(clone)).not.toContain("dist");
  });
});

import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { changesSince, recordPassed, selectChanged, selectCore, selectTiers, testFiles } from "./selection.ts";
import { isInput, leftOutGlobs, leftOutVariable, longest, type Tier, tierOf, tiers } from "./tiers.ts";

const root = join(import.meta.dirname, "../..");
// Only `npm run citus` runs these, on servers that it starts.
const files = testFiles(root).filter((path) => !path.startsWith("test/citus/"));

/** The files that vitest would run, by this repository's settings. */
function listed(leftOut: string): string[] {
  const args = [join(root, "node_modules/vitest/vitest.mjs"), "list", "--filesOnly", "--json"];
  const env = { ...process.env, [leftOutVariable]: leftOut };
  const { stdout } = spawnSync(process.execPath, args, { cwd: root, env, encoding: "utf8" });
  return (JSON.parse(stdout) as { file: string }[]).map(({ file }) => file.slice(root.length + 1)).sort();
}

describe("each test file", () => {
  test("is run by npm run test:all, and once", () => {
    expect(listed("")).toEqual(files.toSorted());
  });

  test("is run by npm test, unless it is of a tier that npm test says it leaves out", () => {
    const { leftOut } = selectCore(root);
    expect(leftOut).toEqual(tiers);
    expect(listed(leftOut.map(({ name }) => name).join(","))).toEqual(files.filter((path) => !tierOf(path)).toSorted());
  });

  test("is of one tier at most, and each tier has some", () => {
    for (const path of files) {
      const names = tiers.filter((tier) =>
        leftOutGlobs(tier.name).some((glob) => path.startsWith(glob.replace("/**", "/"))),
      );
      expect(names.length, path).toBeLessThanOrEqual(1);
    }
    for (const tier of tiers)
      expect(
        files.some((path) => tierOf(path) === tier),
        tier.name,
      ).toBe(true);
  });

  test("of the contract, the ledger, delivery, the store and HTTP is of the core, but for what is slow", () => {
    const core =
      /^packages\/(?:contract|server\/src\/(?:ledger|delivery|notifications|alerts|store|http|commands|ipn))\//;
    const always = files.filter((path) => core.test(path));
    expect(always.length).toBeGreaterThan(100);
    const tiersOfOthers = always.map((path) => tierOf(path)?.name).filter((name) => name !== undefined);
    expect(new Set(tiersOfOthers)).toEqual(new Set(["large-tables", "postgres", "browser"]));
    expect(tiersOfOthers.length).toBeLessThan(15);
  });
});

test("the files that start first exist", () => {
  expect(files).toEqual(expect.arrayContaining([...longest]));
});

test("the inputs of a tier exist", () => {
  for (const { tests, inputs } of tiers)
    for (const path of [...tests, ...inputs]) expect(existsSync(join(root, path)), path).toBe(true);
});

describe("what the tests of a tier import is among its inputs:", () => {
  /** Every file that they load, by whatever path. */
  const reachedBy = (tier: Tier) => {
    const reached = new Set(files.filter((path) => tierOf(path) === tier));
    for (const path of reached) for (const imported of importedBy(path)) reached.add(imported);
    return reached;
  };

  test.each(tiers.map((tier) => [tier.name, tier] as const))("%s", (_, tier) => {
    expect([...reachedBy(tier)].filter((path) => !isInput(tier, path))).toEqual([]);
  });

  test("through our packages, and to what is started as a process", () => {
    const reached = new Set(tiers.flatMap((tier) => [...reachedBy(tier)]));
    for (const path of ["packages/contract/src/receiving/index.ts", "bench/processes/service.ts"])
      expect(reached).toContain(path);
  });
});

/** What a file imports, or starts by a URL. Types are gone when a test runs. */
function importedBy(path: string): string[] {
  const named = /^(?:import|export)\b(?!\s+type\b)[^;"]*"([^"]+)"|\b(?:import|URL)\(\s*"([^"]+)"/gm;
  const names = [...readFileSync(join(root, path), "utf8").matchAll(named)].map(([, one, other = ""]) => one ?? other);
  return names.flatMap((name) => {
    const [, folder, entry = ""] = /^@paybell\/([^/]+)(.*)$/.exec(name) ?? [];
    if (folder !== undefined) {
      const { exports } = JSON.parse(readFileSync(join(root, "packages", folder, "package.json"), "utf8"));
      return [join("packages", folder, exports[`.${entry}`]["paybell-source"])];
    }
    const file = join(dirname(path), name);
    return name.startsWith(".") && /\.[jt]sx?$/.test(name) && existsSync(join(root, file)) ? [file] : [];
  });
}

test("tiers that are asked for by name are run, and nothing else; an unknown one is refused", () => {
  const { files: selected, leftOut, words } = selectTiers(["systems", "bench"], root);
  expect(selected).toEqual(files.filter((path) => ["systems", "bench"].includes(tierOf(path)?.name ?? "")));
  expect(leftOut).toEqual([]);
  expect(words).toContain("systems, bench");
  expect(() => selectTiers(["system"], root)).toThrow("systems");
  expect(() => selectTiers([], root)).toThrow("systems");
});

describe("a change", () => {
  let repository: string;
  let record: string;
  const git = (...args: string[]) =>
    execFileSync("git", ["-c", "user.name=a", "-c", "user.email=a@b.example", ...args], {
      cwd: repository,
      encoding: "utf8",
    }).trim();
  const commit = (path: string, text: string) => {
    writeFileSync(join(repository, path), text);
    git("add", "-A");
    git("commit", "-qm", path);
    return git("rev-parse", "HEAD");
  };

  beforeEach(() => {
    const folder = mkdtempSync(join(tmpdir(), "paybell-changes-"));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    repository = mkdtempSync(join(folder, "repository-"));
    record = join(folder, "cache/passed");
    git("init", "-q");
  });

  test("are found since the commit that passed: committed, edited, added and removed files", () => {
    commit("removed", "1");
    const passed = commit("edited", "1");
    recordPassed(record, repository);
    expect(changesSince(record, repository)).toEqual({ since: passed, paths: [] });
    commit("committed", "1");
    rmSync(join(repository, "removed"));
    writeFileSync(join(repository, "edited"), "2");
    writeFileSync(join(repository, "added"), "1");
    expect(changesSince(record, repository)?.paths).toEqual(["committed", "edited", "removed", "added"]);
  });

  test("is unknown without a record, and when what passed is no part of this history", () => {
    commit("a", "1");
    expect(changesSince(record, repository)).toBeUndefined();
    const passed = commit("a", "2");
    recordPassed(record, repository);
    git("reset", "-q", "--hard", "HEAD~1");
    commit("a", "3");
    expect(changesSince(record, repository)).toBeUndefined();
    writeFileSync(record, `${passed}x`);
    expect(changesSince(record, repository)).toBeUndefined();
  });

  test("is not forgotten by a run on files that no commit has", () => {
    const passed = commit("a", "1");
    recordPassed(record, repository);
    commit("a", "2");
    writeFileSync(join(repository, "b"), "1");
    recordPassed(record, repository);
    expect(changesSince(record, repository)).toEqual({ since: passed, paths: ["a", "b"] });
  });
});

describe("the tests after a change", () => {
  const since = "0123456789abcdef0123456789abcdef01234567";
  const leftOutAfter = (...paths: string[]) => selectChanged({ since, paths }, root).leftOut.map(({ name }) => name);
  const all = tiers.map(({ name }) => name);

  test("is every tier when nothing is known, when what all share has changed", () => {
    expect(selectChanged(undefined, root)).toMatchObject({ leftOut: [], files: files.filter(tierOf) });
    expect(leftOutAfter("package-lock.json")).toEqual([]);
    expect(leftOutAfter("packages/contract/src/seal.ts")).toEqual(["checkers"]);
  });

  test("is none when nothing that a tier tests has changed, and where only tests of others have", () => {
    expect(leftOutAfter()).toEqual(all);
    expect(leftOutAfter("packages/server/src/ledger/reversals.test.ts")).toEqual(all);
    expect(leftOutAfter("scripts/fixtures/biome.txtar")).not.toContain("checkers");
    expect(selectChanged({ since, paths: [] }, root).files).toEqual([]);
    expect(leftOutAfter("CHANGELOG.md", "SECURITY.md", "packages/contractor/a.ts")).toEqual(all);
  });

  test("is what tests the change, and the rest is named", () => {
    expect(leftOutAfter("test/languages/guide.test.ts")).toEqual(all.filter((name) => name !== "languages"));
    expect(leftOutAfter("packages/console/src/main.tsx")).toEqual(
      all.filter((name) => !["packages", "documents", "browser"].includes(name)),
    );
    const { words, leftOut, files: selected } = selectChanged({ since, paths: ["ops/nginx.conf"] }, root);
    expect(leftOut.length).toBe(all.length - 3);
    for (const { name } of leftOut) expect(words).toContain(`${name} (`);
    expect(words).toContain("since 0123456789");
    expect(selected).toContain("test/systems/proxies.test.ts");
    expect(selected?.filter((path) => leftOut.includes(tierOf(path) ?? (undefined as never)))).toEqual([]);
  });

  test("holds the tests of a tier themselves", () => {
    for (const tier of tiers) for (const path of tier.tests) expect(isInput(tier, path)).toBe(true);
  });
});

import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { beforeEach, describe, expect, test, vi } from "vitest";
import { BaseSequencer, type TestSpecification, type Vitest } from "vitest/node";
import { temporaryFolder } from "../../test/support/temporary.ts";
import { git, selectChanged, selectCore, selectTiers, TierRecord, testFiles } from "./selection.ts";
import { isInput, leftOutGlobs, leftOutVariable, type Tier, TiersFirst, tierOf, tiers } from "./tiers.ts";

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

test("the files of tiers begin first", async () => {
  // As vitest would order them.
  vi.spyOn(BaseSequencer.prototype, "sort").mockImplementation(async (given) => given);
  const given = ["test/cli.test.ts", "bench/pairs.test.ts"].map((path) => ({ moduleId: join(root, path) }));
  const sorted = await new TiersFirst({} as Vitest).sort(given as TestSpecification[]);
  expect(sorted).toEqual(given.toReversed());
  vi.restoreAllMocks();
});

test("the inputs of a tier exist", () => {
  for (const { tests, inputs } of tiers)
    for (const path of [...tests, ...inputs]) expect(existsSync(join(root, path)), path).toBe(true);
});

describe("what the tests of a tier import or read is among its inputs:", () => {
  /** Every file that they load, by whatever path. */
  const reachedBy = (tier: Tier) => {
    const reached = new Set(files.filter((path) => tierOf(path) === tier));
    for (const path of reached) for (const imported of importedBy(path)) reached.add(imported);
    return reached;
  };

  test.each(tiers.map((tier) => [tier.name, tier] as const))("%s", (_, tier) => {
    // Of the changelog, the newest release is read: package.json is changed in the same commit.
    const read = [...reachedBy(tier)].filter((path) => path !== "CHANGELOG.md");
    expect(read.filter((path) => !isInput(tier, path))).toEqual([]);
  });

  test("through our packages, and to what is started as a process", () => {
    const reached = new Set(tiers.flatMap((tier) => [...reachedBy(tier)]));
    for (const path of ["packages/contract/src/receiving/index.ts", "bench/processes/service.ts"])
      expect(reached).toContain(path);
  });
});

/** What a file imports, starts by a URL, or reads by a path of the repository. Types are gone when a test runs. */
function importedBy(path: string): string[] {
  const named = /^(?:import|export)\b(?!\s+type\b)[^;"]*"([^"]+)"|\b(?:import|URL)\(\s*"([^"]+)"/gm;
  const text = readFileSync(join(root, path), "utf8");
  const joined = /\bjoin\(\s*(?:(root|repository)|import\.meta\.dirname),\s*"([^"$]+\.[a-z]+)"\)/g;
  const read = [...text.matchAll(joined)]
    .map(([, isRoot, name = ""]) => join(isRoot === undefined ? dirname(path) : "", name))
    .filter((name) => !/^(?:node_modules|dist)\/|\/dist\//.test(name) && existsSync(join(root, name)));
  const names = [...text.matchAll(named)].map(([, one, other = ""]) => one ?? other);
  const imported = names.flatMap((name) => {
    const [, folder, entry = ""] = /^@paybell\/([^/]+)(.*)$/.exec(name) ?? [];
    if (folder !== undefined) {
      const { exports } = JSON.parse(readFileSync(join(root, "packages", folder, "package.json"), "utf8"));
      return [join("packages", folder, exports[`.${entry}`]["paybell-source"])];
    }
    const file = join(dirname(path), name);
    return name.startsWith(".") && /\.[jt]sx?$/.test(name) && existsSync(join(root, file)) ? [file] : [];
  });
  return [...imported, ...read];
}

test("tiers that are asked for by name are run, and nothing else; an unknown one is refused", () => {
  const { files: selected, leftOut, words } = selectTiers(["systems", "bench"], root);
  expect(selected).toEqual(files.filter((path) => ["systems", "bench"].includes(tierOf(path)?.name ?? "")));
  expect(leftOut).toEqual([]);
  expect(words).toContain("systems, bench");
  expect(() => selectTiers(["system"], root)).toThrow("systems");
  expect(() => selectTiers([], root)).toThrow("systems");
});

describe("a tier that has passed", () => {
  let repository: string;
  let folder: string;
  const write = (path: string, text: string) => {
    mkdirSync(join(repository, dirname(path)), { recursive: true });
    writeFileSync(join(repository, path), text);
  };
  const passed = () => new TierRecord(join(folder, "cache"), repository).passed().map(({ name }) => name);
  const all = tiers.map(({ name }) => name);
  const but = (...names: string[]) => all.filter((name) => !names.includes(name));

  beforeEach(() => {
    folder = temporaryFolder();
    repository = join(folder, "repository");
    write("fuzz/a.ts", "1");
    write("bench/a.ts", "1");
    git(repository, "init", "-q");
    git(repository, "add", "-A");
  });

  test("is known by the contents of its inputs: edited, added and removed files, whatever commit they are of", () => {
    expect(passed()).toEqual([]);
    new TierRecord(join(folder, "cache"), repository).note(tiers);
    expect(passed()).toEqual(all);
    write("fuzz/b.ts", "");
    expect(passed()).toEqual(but("fuzz"));
    rmSync(join(repository, "fuzz/b.ts"));
    expect(passed()).toEqual(all);
    // The host's tests, and the long ones of faults, start it.
    write("bench/a.ts", "2");
    expect(passed()).toEqual(but("acquirer-host", "faults", "bench"));
    new TierRecord(join(folder, "cache"), repository).note(tiers);
    rmSync(join(repository, "bench/a.ts"));
    expect(passed()).toEqual(but("acquirer-host", "faults", "bench"));
    for (const text of ["1", "2"]) {
      write("bench/a.ts", text);
      expect(passed()).toEqual(all);
    }
  });

  test("is not noted if its inputs changed while it ran, or git does not know the files", () => {
    const record = new TierRecord(join(folder, "cache"), repository);
    write("fuzz/a.ts", "2");
    record.note(tiers);
    expect(passed()).toEqual(but("fuzz"));
    rmSync(join(repository, ".git"), { recursive: true });
    new TierRecord(join(folder, "cache"), repository).note(tiers);
    expect(passed()).toEqual([]);
  });
});

describe("a tier is run after a change", () => {
  const runAfter = (...paths: string[]) =>
    tiers.filter((tier) => paths.some((path) => isInput(tier, path))).map(({ name }) => name);
  const all = tiers.map(({ name }) => name);

  test("of what all tiers share, and of the contract", () => {
    expect(runAfter("package-lock.json")).toEqual(all);
    expect(runAfter("packages/contract/src/cryptography/seal.ts")).toEqual(all.filter((name) => name !== "checkers"));
  });

  test("of its own tests, and not of the tests of others", () => {
    for (const tier of tiers) for (const path of tier.tests) expect(isInput(tier, path)).toBe(true);
    expect(runAfter("test/languages/guide.test.ts")).toEqual(["languages"]);
    expect(runAfter("packages/server/src/ledger/reversals/reversals.test.ts")).toEqual([]);
  });

  test("of what it tests, and of nothing else", () => {
    expect(runAfter("CHANGELOG.md", "SECURITY.md", "packages/contractor/a.ts")).toEqual([]);
    expect(runAfter("packages/console/src/main.tsx")).toEqual(["packages", "documents", "browser"]);
    expect(runAfter("ops/nginx.conf")).toEqual(["documents", "operations", "systems"]);
    expect(runAfter("docs/internals/delivery.md")).toEqual(["partner", "documents", "operations"]);
  });
});

test("a run names each tier that it leaves out", () => {
  const passed = tiers.filter(({ name }) => name !== "fuzz");
  const { words, leftOut, files: selected } = selectChanged(passed, root);
  expect([leftOut, selected]).toEqual([passed, undefined]);
  for (const { name } of passed) expect(words).toContain(`${name} (`);
  expect(words).not.toContain("fuzz");
});

import { cpSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Node } from "typescript/unstable/ast";
import { API } from "typescript/unstable/sync";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { packGo } from "../../scripts/build/clients.ts";
import { entryPaths, listPackages, type Package } from "../../scripts/build/packages.ts";
import { requireOneVersion } from "../../scripts/pack.ts";
import { needs, pathOf } from "../support/programs.ts";
import { findNodes, runsOn } from "./nodes.ts";
import { importedPackages, installAll, type Packed, packAll, repository, run } from "./project.ts";
import { installedFiles, loaded, reachedFrom } from "./size.ts";

const nodes = await findNodes(process.env["PATH"] ?? "");
const packages = listPackages(repository);
let directory = "";
let packed: Packed[] = [];
let project = "";

beforeAll(async () => {
  ({ directory, packed } = await packAll());
  project = await installAll(packed);
  cpSync(join(import.meta.dirname, "consumers"), project, { recursive: true });
  await compileConsumers();
});

afterAll(() => {
  if (project !== "") rmSync(project, { recursive: true, force: true });
});

test("ships what the package needs and nothing else", () => {
  expect(packed.length).toBeGreaterThan(0);
  for (const { package: one, files } of packed) {
    expect(files, one.manifest.name).toContain("LICENSE");
    const strangers = files.filter(
      (file) => !/^(?:package\.json|README\.md|LICENSE|dist\/|bin\/|vectors\/)/.test(file),
    );
    expect(strangers, one.manifest.name).toEqual([]);
    expect(
      files.filter((file) => /\.test\.|(?<!\.d)\.ts$|\.map$|tsbuildinfo|fixtures/.test(file)),
      one.manifest.name,
    ).toEqual([]);
    const entries = entryPaths(one.manifest).map((path) => path.replace("./", ""));
    expect(entries, one.manifest.name).toContain("dist/index.js");
    expect(files, one.manifest.name).toEqual(
      expect.arrayContaining(entries.flatMap((path) => [path, path.replace(/\.js$/, ".d.ts")])),
    );
    const shipped = readFileSync(join(directory, one.folder, "package.json"), "utf8");
    const named = [...shipped.matchAll(/"\.\/((?:src|dist)\/[^"]+)"/g)].map(([, path]) => path);
    expect(files, one.manifest.name).toEqual(expect.arrayContaining(named));
  }
});

test("ships the licences of the code of others that is in the pages", () => {
  const shipped = (path: string) => readFileSync(join(directory, "server/dist", path), "utf8");
  expect(shipped("console/THIRD-PARTY-LICENSES.md")).toContain("## react - ");
  const guides = shipped("guides/shared/THIRD-PARTY-LICENSES.md");
  const titles = [...guides.matchAll(/^## (\S+) - /gm)].map(([, name]) => name);
  expect(titles).toEqual(
    expect.arrayContaining(["@vue/runtime-dom", "vitepress", "minisearch", "@scalar/fastify-api-reference"]),
  );
  expect(guides.match(/Permission is hereby granted/g)?.length).toBeGreaterThanOrEqual(titles.length);
  // What the reference's script brings says so in its own notices.
  expect(guides).toMatch(/tabbable.*\n.*@license MIT/);
});

test("clients in other languages are packed by what this machine has, and the others are named", () => {
  const lines = readFileSync(join(directory, "output"), "utf8").trimEnd().split("\n");
  expect(lines.slice(packages.length + 1)).toEqual([
    "clients/python is left out: it needs Python with pip",
    "clients/php is left out: it needs PHP with zip, and Composer",
    "clients/java is left out: it needs Maven with a JDK 17 or newer",
  ]);
  const [program, ...args] = packGo(join(repository, "clients/go"), directory);
  expect([program, readFileSync(join(directory, "programs/go-arguments"), "utf8")]).toEqual([
    "go",
    `version\n${args.join(" ")}\n`,
  ]);
});

test("are of one version, and each names that version of the others", () => {
  expect(() => requireOneVersion(packages)).not.toThrow();
  const [first, ...others] = packages;
  if (first === undefined) throw new Error("there are no packages");
  const newer = { manifest: { ...first.manifest, version: "9.9.9" } };
  expect(() => requireOneVersion([newer, ...others])).toThrow("9.9.9");
});

test("ships no code that imports what the package does not depend on", () => {
  for (const one of packed) {
    const { name, dependencies = {}, optionalDependencies = {}, peerDependencies = {} } = one.package.manifest;
    const declared = Object.keys({ ...dependencies, ...optionalDependencies, ...peerDependencies });
    const strangers = [...importedPackages(directory, one)].filter((imported) => !declared.includes(imported));
    expect(strangers, name).toEqual([]);
  }
  const partner = packed.find(({ package: one }) => one.folder === "partner");
  expect(partner && [...importedPackages(directory, partner)]).toEqual(["@paybell/contract"]);
});

test.each(["contract", "partner"])("ships types of %s whose documentation editors find where it belongs", (folder) => {
  const one = packed.find((candidate) => candidate.package.folder === folder);
  const types = (one?.files ?? []).filter((file) => file.endsWith(".d.ts"));
  const installed = join(project, "node_modules/@paybell", folder);
  const config = join(project, `tsconfig.${folder}.json`);
  const files = types.map((path) => join(installed, path));
  writeFileSync(config, JSON.stringify({ compilerOptions: { noLib: true, noResolve: true, types: [] }, files }));
  const api = new API({ cwd: project });
  try {
    const program = api.updateSnapshot({ openProjects: [config] }).getProject(config)?.program;
    for (const path of files) {
      const found = new Set<number>();
      const visit = (node: Node) => {
        for (const { pos } of node.jsDoc ?? []) found.add(pos);
        node.forEachChild(visit);
      };
      program?.getSourceFile(path)?.forEachChild(visit);
      // TypeScript attaches no documentation to the members of a union; theirs is for readers of the file.
      const written = readFileSync(path, "utf8").match(/\/\*\*(?:(?!\*\/).)*\*\/(?!\|?")/gs) ?? [];
      expect(found.size, path).toBe(written.length);
    }
  } finally {
    api.close();
  }
  expect(types).toContain("dist/index.d.ts");
});

describe("the package that a partner gets", () => {
  test("a process that receives loads at most 40 kB, contract included", async () => {
    expect((await loaded(project, ["@paybell/partner"])).bytes).toBeLessThanOrEqual(40_000);
  });

  test("the receiving code, with fetch and node:http, is at most 40 kB installed, README included", () => {
    const directory = join(project, "node_modules/@paybell/partner");
    const manifest = packages.find(({ folder }) => folder === "partner")?.manifest;
    const entries = [".", "./fetch", "./node"].map((entry) => manifest?.exports[entry]?.default ?? entry);
    const received = reachedFrom(directory, entries);
    const files = [...installedFiles(directory)].filter(([path]) => received.has(path) || !path.startsWith("dist/"));
    expect(received.size).toBeGreaterThan(10);
    expect(files.reduce((bytes, [, size]) => bytes + size, 0)).toBeLessThanOrEqual(40_000);
  });

  test("uses only Node's crypto and buffers, which edge runtimes have", async () => {
    const { builtins } = await loaded(project, ["@paybell/partner", "@paybell/partner/fetch", "@paybell/partner/hono"]);
    expect(builtins).toEqual(["node:buffer", "node:crypto"]);
  });
});

const runtimes = [
  { name: "Bun", program: "bun", args: [] },
  { name: "Deno", program: "deno", args: ["run", "--allow-read", "--no-prompt"] },
] as const;

for (const { name, program, args } of runtimes) {
  test(`on ${name}, the published vectors come out as on Node, and a POST is answered`, needs(program), async () => {
    await expectVectors([pathOf(program), ...args]);
  });
}

/** The result of opening the vectors with the installed package. */
async function expectVectors([executable, ...args]: readonly [string, ...string[]]): Promise<void> {
  const vectors = join(repository, "docs/partner/vectors.json");
  const { stdout } = await run(executable, [...args, "vectors.mjs", vectors], { cwd: project });
  const { tried, ...came } = JSON.parse(stdout);
  expect(came).toEqual({ wrong: [], statuses: [204, 400, 400], handled: 1 });
  expect(tried).toBeGreaterThan(140);
}

describe.each(nodes)("on Node $version", (node) => {
  test("each entry gives the same names by import and by require as its source", async () => {
    const entries = packages.filter(({ manifest }) => runsOn(manifest.engines.node, node)).flatMap(entriesOf);
    expect(entries.length).toBeGreaterThan(0);
    const all = await namesOfSources();
    const expected = Object.fromEntries(entries.map((entry) => [entry, all[entry]]));
    for (const names of Object.values(expected)) expect(names?.length).toBeGreaterThan(0);

    // `require` is first: it takes less than `import`, which would have loaded everything before.
    const script = `import { createRequire } from "node:module";
const require = createRequire(import.meta.url);
${printNames(entries, "require")}${printNames(entries, "await import")}`;
    writeFileSync(join(project, "names.mjs"), script);
    const { stdout } = await run(node.path, ["names.mjs"], { cwd: project });
    const names = stdout.trimEnd().split("\n");
    expect(names.map((line) => JSON.parse(line))).toEqual([expected, expected]);
  });

  test.each([
    [
      "contract",
      { text: expect.stringContaining("&cardScheme=&tid=&mid=000000000000001&"), verified: true, keyId: "key-1" },
    ],
    ["partner", { amount: "12.50", refused: true }],
  ])("compiled against the shipped types, %s works in both module systems", async (name, expected) => {
    for (const file of [`out/${name}.mjs`, `out/${name}.cjs`]) {
      const { stdout } = await run(node.path, [file], { cwd: project });
      expect(JSON.parse(stdout), file).toEqual(expected);
    }
  });

  test("the published vectors come out right, and a POST is answered", async () => {
    await expectVectors([node.path]);
  });

  test.each(packages.filter(({ manifest }) => manifest.bin !== undefined))(
    "$manifest.name installs a command that runs",
    async ({ manifest }) => {
      for (const [name, file] of Object.entries(manifest.bin ?? {})) {
        const command = join(project, "node_modules", manifest.name, file);
        const { stdout } = await run(node.path, [command, "--help"], { cwd: project });
        expect(stdout).toContain(name);
      }
    },
  );
});

/** The names under which a package's entries are imported. */
function entriesOf({ manifest }: Package): string[] {
  return Object.keys(manifest.exports).map((subpath) => `${manifest.name}${subpath.slice(1)}`);
}

/** A program that prints the names of each entry. All in one process: most of each is its start. */
function printNames(entries: readonly string[], load: "await import" | "require"): string {
  const names = `[entry, Object.keys(${load}(entry)).sort()]`;
  return `{
const all = [];
for (const entry of ${JSON.stringify(entries)}) all.push(${names});
console.log(JSON.stringify(Object.fromEntries(all)));
}
`;
}

let sourceNames: Promise<Readonly<Record<string, readonly string[]>>> | undefined;

/** The exports of each entry's source. Node loads them: vitest would transform the whole service, which takes 20 s. */
function namesOfSources() {
  const script = printNames(packages.flatMap(entriesOf), "await import");
  const args = ["--conditions=paybell-source", "--input-type=module", "--eval", script];
  sourceNames ??= run(process.execPath, args, { cwd: repository }).then(({ stdout }) => JSON.parse(stdout));
  return sourceNames;
}

/** A user's own strict settings, which look into the shipped .d.ts files too. */
async function compileConsumers(): Promise<void> {
  const compilerOptions = {
    target: "es2023",
    module: "nodenext",
    strict: true,
    skipLibCheck: false,
    types: ["node"],
    typeRoots: [join(repository, "node_modules/@types")],
    outDir: "out",
    rootDir: ".",
  };
  // Every entry's types, also of those that no example uses. The service's own follow third-party types.
  const entries = packages.filter(({ folder }) => folder === "contract" || folder === "partner").flatMap(entriesOf);
  const all = entries.map((entry, index) => `export * as entry${index} from "${entry}";\n`);
  writeFileSync(join(project, "all.mts"), all.join(""));
  const bundled = { ...compilerOptions, module: "esnext", moduleResolution: "bundler", noEmit: true };
  await compile("tsconfig.json", { compilerOptions, include: ["*.mts", "*.cts"], exclude: ["out"] });
  await compile("tsconfig.bundler.json", { compilerOptions: bundled, include: ["*.mts"], exclude: ["out"] });
}

async function compile(name: string, settings: object): Promise<void> {
  const path = join(project, name);
  writeFileSync(path, JSON.stringify(settings));
  await run(process.execPath, [join(repository, "node_modules/typescript/bin/tsc"), "-p", path]).catch(
    (error: Error & { stdout?: string }) => {
      throw new Error(`a consumer does not compile by ${name}:\n${error.stdout}`, { cause: error });
    },
  );
}

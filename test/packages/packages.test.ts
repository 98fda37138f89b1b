import { cpSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { entryPaths, listPackages, type Package } from "../../scripts/build/packages.ts";
import { findNodes, type NodeFound, runsOn } from "./nodes.ts";
import { importedPackages, installAll, type Packed, packAll, repository, run } from "./project.ts";
import { findRuntimes } from "./runtimes.ts";
import { bytesReached, loaded } from "./size.ts";

const nodes = await findNodes(process.env["PATH"] ?? "");
const packages = listPackages(repository);
const directory = mkdtempSync(join(tmpdir(), "paybell-packed-"));
let packed: Packed[] = [];
let project = "";

beforeAll(async () => {
  packed = await packAll(directory);
  project = await installAll(packed);
  cpSync(join(import.meta.dirname, "consumers"), project, { recursive: true });
  await compileConsumers();
}, 120_000);

afterAll(() => {
  rmSync(directory, { recursive: true, force: true });
  if (project !== "") rmSync(project, { recursive: true, force: true });
});

test("ships what the package needs and nothing else", () => {
  expect(packed.length).toBeGreaterThan(0);
  for (const { package: one, files } of packed) {
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
  }
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

describe("what a partner gets", () => {
  /** For the frameworks and databases of a partner's own, and for tests. */
  const forSome =
    /^dist\/(node|express|fastify|fetch|hono|next|testing|stores|shared\/(exchange|read-stream|node-answer))/;

  function bytesOf(folder: string, of: (file: string) => boolean): number {
    const one = packed.find(({ package: { folder: name } }) => name === folder);
    const files = (one?.files ?? []).filter((file) => !file.endsWith("/") && of(file));
    expect(files.length).toBeGreaterThan(2);
    return files.reduce((sum, file) => sum + statSync(join(project, "node_modules/@paybell", folder, file)).size, 0);
  }

  test("a process that receives loads at most 40 kB, contract included; so has the partner's own code", async () => {
    expect((await loaded(project, ["@paybell/partner"])).bytes).toBeLessThanOrEqual(40_000);
    expect(bytesOf("partner", (file) => file.endsWith(".js") && !forSome.test(file))).toBeLessThanOrEqual(40_000);
  });

  test("code and types of what receives are at most 40 kB of this package", () => {
    expect(bytesReached(project, "@paybell/partner")).toBeLessThanOrEqual(40_000);
  });

  test("is of Node the crypto and the buffers alone, which edge runtimes have", async () => {
    const { builtins } = await loaded(project, ["@paybell/partner", "@paybell/partner/fetch", "@paybell/partner/hono"]);
    expect(builtins).toEqual(["node:buffer", "node:crypto"]);
  });

  test("is what the README says, within a twentieth", async () => {
    const readme = readFileSync(join(repository, "packages/partner/README.md"), "utf8");
    const stated = (label: string) => {
      const cell = readme
        .split("\n")
        .find((line) => line.startsWith(`| ${label}`))
        ?.split("|")[2];
      return Number(cell?.trim().replace(" kB", "")) * 1000;
    };
    const within = (label: string, bytes: number) => {
      expect(Math.abs(stated(label) - bytes) / bytes, `${label}: ${bytes} bytes`).toBeLessThan(0.05);
    };
    within("loaded to receive", (await loaded(project, ["@paybell/partner"])).bytes);
    within(
      "loaded to receive by node:http",
      (await loaded(project, ["@paybell/partner", "@paybell/partner/node"])).bytes,
    );
    within("installed to receive", bytesReached(project, "@paybell/partner"));
    within(
      "installed: code without adapters",
      bytesOf("partner", (file) => file.endsWith(".js") && !forSome.test(file)),
    );
    within(
      "installed: types without adapters",
      bytesOf("partner", (file) => file.endsWith(".d.ts") && !forSome.test(file)),
    );
    within(
      "installed: code of @paybell/partner",
      bytesOf("partner", (file) => file.endsWith(".js")),
    );
    within(
      "installed: types of @paybell/partner",
      bytesOf("partner", (file) => file.endsWith(".d.ts")),
    );
    within(
      "installed: @paybell/contract",
      bytesOf("contract", () => true),
    );
  });
});

describe.each(findRuntimes(process.env["PATH"] ?? ""))("on $name", ({ name, command }) => {
  test("the published vectors come out as on Node, and a POST is answered", async (context) => {
    if (command === undefined) {
      process.stderr.write(`NOT TRIED on ${name}, which is not installed (npm install ${name.toLowerCase()})\n`);
      context.skip(`${name} is not installed`);
      return;
    }
    await expectVectors(command);
  });
});

/** What the vectors come to when the installed package opens them. */
async function expectVectors([executable, ...args]: readonly [string, ...string[]]): Promise<void> {
  const vectors = join(repository, "docs/partner/vectors.json");
  const { stdout } = await run(executable, [...args, "vectors.mjs", vectors], { cwd: project });
  const { tried, ...came } = JSON.parse(stdout);
  expect(came).toEqual({ wrong: [], statuses: [204, 400, 400], handled: 1 });
  expect(tried).toBeGreaterThan(140);
}

describe.each(nodes)("on Node $version", (node) => {
  test.each(packages.filter(({ manifest }) => runsOn(manifest.engines.node, node)).flatMap(entriesOf))(
    "%s gives the same names by import and by require as its source",
    async (entry) => {
      const source = Object.keys((await import(entry)) as object).sort();
      const print = "process.stdout.write(JSON.stringify(Object.keys(all).sort()))";

      const imported = await runScript(node, "names.mjs", `import * as all from "${entry}";\n${print}`);
      const required = await runScript(node, "names.cjs", `const all = require("${entry}");\n${print}`);

      expect(JSON.parse(imported)).toEqual(source);
      expect(JSON.parse(required)).toEqual(source);
      expect(source.length).toBeGreaterThan(0);
    },
  );

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

async function runScript(node: NodeFound, name: string, text: string): Promise<string> {
  writeFileSync(join(project, name), text);
  const { stdout } = await run(node.path, [name], { cwd: project });
  return stdout;
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
  writeFileSync(
    join(project, "tsconfig.json"),
    JSON.stringify({ compilerOptions, include: ["*.mts", "*.cts"], exclude: ["out"] }),
  );
  await run(process.execPath, [join(repository, "node_modules/typescript/bin/tsc"), "-p", project]).catch(
    (error: Error & { stdout?: string }) => {
      throw new Error(`a consumer does not compile:\n${error.stdout}`, { cause: error });
    },
  );
}

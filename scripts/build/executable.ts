import { execFile } from "node:child_process";
import { existsSync, globSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { promisify } from "node:util";
import { type Plugin, rolldown } from "rolldown";
import type { Packed } from "./packages.ts";

const run = promisify(execFile);

/** Node's options of the service, as in the image. */
const nodeOptions = ["--max-old-space-size=1024", "--heap-growing-percent=100", "--v8-pool-size=2"];
const entry = "paybell-executable";

/**
 * Makes `paybell` one executable file for this kind of machine: Node, the code of the staged packages and of everything
 * that they depend on, and the files that they read. Node shows these as a virtual file system, in which each has the
 * place that it has in `staging`: code that finds its files by `import.meta` finds them there, too. Next to it is
 * THIRD-PARTY-LICENSES, with the licence of Node and of every package whose code is in it.
 *
 * @param staging has each package in a folder of its name
 * @returns its path below `destination`
 */
export async function packExecutable(
  root: string,
  packed: readonly Packed[],
  { staging, destination }: { readonly staging: string; readonly destination: string },
): Promise<string> {
  const folder = join(staging, "executable");
  const files = new Map<string, string>();
  const plugins = [ownPackages(packed, staging), ownPlaces(staging, (path, file) => files.set(path, file))];
  const resolve = { modules: [join(root, "node_modules")] };
  const bundle = await rolldown({ input: { main: entry }, platform: "node", resolve, plugins });
  // Whole names, for what an error's stack says.
  const minify = { compress: true, mangle: false, codegen: true };
  const { output } = await bundle.write({ dir: folder, chunkFileNames: "[name].js", minify });
  await bundle.close();
  const code = new Set(output.flatMap((chunk) => (chunk.type === "chunk" ? chunk.moduleIds : [])));
  for (const { package: one } of packed) {
    for (const path of globSync("**/*", { cwd: join(staging, one.folder) })) {
      const file = join(staging, one.folder, path);
      if (statSync(file).isFile() && !path.endsWith(".d.ts") && !code.has(file))
        files.set(`${one.folder}/${path}`, file);
    }
  }
  const [main, ...chunks] = output.map(({ fileName }) => fileName);
  for (const name of chunks) files.set(name, join(folder, name));
  const made = join(destination, `paybell-${process.platform}-${process.arch}`);
  const config = {
    main: join(folder, main ?? ""),
    mainFormat: "module",
    output: made,
    execArgv: nodeOptions,
    disableExperimentalSEAWarning: true,
    useVfs: true,
    assets: Object.fromEntries(files),
  };
  mkdirSync(destination, { recursive: true });
  writeFileSync(join(folder, "sea.json"), JSON.stringify(config));
  await run(process.execPath, ["--build-sea", join(folder, "sea.json")]);
  writeFileSync(join(destination, "THIRD-PARTY-LICENSES"), thirdPartyLicenses(root, code, files.values()));
  return made;
}

/**
 * The licences of Node and of each package of the modules, then what the builds of the pages wrote of theirs.
 *
 * @param modules paths of the bundled modules
 * @param files paths of the files that are shipped beside them
 */
function thirdPartyLicenses(root: string, modules: Iterable<string>, files: Iterable<string>): string {
  const node = join(
    root,
    "node_modules",
    `node-${process.platform === "darwin" ? "bin-darwin" : process.platform}-${process.arch}`,
  );
  const bundled = [...modules].flatMap((path) => /^.*\/node_modules\/(?:@[^/]+\/)?[^/]+/.exec(path)?.[0] ?? []);
  const sections = [...new Set([node, ...bundled])].map((folder) => {
    const { name, version, license } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
    const all = readdirSync(folder);
    const textOf = (file: string) => readFileSync(join(folder, file), "utf8").trim();
    const texts = all.filter((file) => /^(?:licen[cs]e|copying|notice)/i.test(file)).map(textOf);
    // Some packages have it at the end of their README alone.
    const readme = texts.length === 0 ? all.filter((file) => /^readme/i.test(file)).map(textOf) : [];
    texts.push(...readme.flatMap((text) => /^#+ *licen[cs]e\b.*/ims.exec(text)?.[0] ?? []));
    return [`${name} ${version}: ${license}`, ...texts].join("\n\n");
  });
  const ofPages = [...files].filter((path) => path.endsWith("/THIRD-PARTY-LICENSES.md"));
  const pages = ofPages.map((path) => readFileSync(path, "utf8").trim());
  return `${[...sections.sort(), ...pages].join(`\n\n${"-".repeat(80)}\n\n`)}\n`;
}

/** Finds the staged packages by their names, and the command's code, which is imported for what it does. */
function ownPackages(packed: readonly Packed[], staging: string): Plugin {
  const paths = packed.flatMap(({ package: { folder, manifest } }) =>
    Object.entries(manifest.exports).map(
      ([subpath, target]) => [`${manifest.name}${subpath.slice(1)}`, join(staging, folder, target.default)] as const,
    ),
  );
  const known = new Map(paths);
  const command = join(staging, "cli/dist/main.js");
  return {
    name: "own-packages",
    resolveId(id) {
      if (id === entry) return entry;
      return id === command ? { id, moduleSideEffects: true } : known.get(id);
    },
    load(id) {
      if (id !== entry) return null;
      // Node opens an inspector for any process that may send this signal: it reads every key in memory.
      return `process.on("SIGUSR1", () => undefined);\nawait import(${JSON.stringify(command)});`;
    },
  };
}

/** Gives each module the place of its source, from the bundle, and adds the files that others name beside it. */
function ownPlaces(staging: string, add: (path: string, file: string) => void): Plugin {
  return {
    name: "own-places",
    transform(code, id) {
      if (!/\bimport\.meta\.(?:url|dirname)\b/.test(code)) return null;
      const place = id.startsWith(`${staging}/`)
        ? relative(staging, id)
        : `node_modules/${id.split("/node_modules/").at(-1)}`;
      for (const [, beside = ""] of code.matchAll(/new URL\(["']([^"']+)["'], import\.meta\.url\)/g)) {
        const file = join(dirname(id), beside);
        if (existsSync(file) && statSync(file).isFile()) add(join(dirname(place), beside), file);
      }
      return code
        .replaceAll("import.meta.url", `new URL(${JSON.stringify(`./${place}`)}, import.meta.url).href`)
        .replaceAll("import.meta.dirname", `(import.meta.dirname + ${JSON.stringify(`/${dirname(place)}`)})`);
    },
  };
}

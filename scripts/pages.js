// Builds the pages that the service serves: those of the console, and the guides (docs/, by VitePress) with the API
// reference. `npm run console` and `npm run guides` build one of them again; with --if-missing only what was never built
// is built, with --if-changed also what was built from other files, and with --guides-later the guides in a process of
// their own, for which the first `npm start` does not wait.
// Plain JavaScript, because an old Node may run it. Without the development tools there is nothing to build with.
import { execFile, spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdir, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { brotliCompress, constants, gzip } from "node:zlib";

const root = join(dirname(fileURLToPath(import.meta.url)), "..");
const consoleDist = join(root, "packages/console/dist");
const guidesDist = join(root, "docs/.vitepress/dist");

async function buildConsole() {
  const { build } = await import("vite");
  await build({ root: join(root, "packages/console"), logLevel: "error" });
}

/** A folder for each kind of reader, `shared` for both, and `build.json` at last: the guides are there when it is. */
async function buildGuides() {
  await rm(guidesDist, { recursive: true, force: true });
  for (const readers of ["partners", "operators"]) {
    const vitepress = join(root, "node_modules/vitepress/bin/vitepress.js");
    const env = { ...process.env, PAYBELL_READERS: readers };
    await promisify(execFile)(process.execPath, [vitepress, "build", join(root, "docs")], { env });
  }
  await writeReference(join(guidesDist, "shared"));
  await writeLicences(join(guidesDist, "shared"));
  const names = await readdir(guidesDist, { recursive: true });
  const paths = names.sort().map((name) => join(guidesDist, name));
  await Promise.all(paths.filter((path) => /\.(?:html|js|css|json|svg)$/.test(path)).map(compress));
  const pages = await Promise.all(paths.filter((path) => path.endsWith(".html")).map((path) => readFile(path, "utf8")));
  // The pages name their assets by hash, so that every change of the site changes a page.
  const id = createHash("sha256").update(pages.join()).digest("base64url").slice(0, 22);
  const scripts = [...new Set(pages.flatMap(scriptsOf))].map(
    (code) => `'sha256-${createHash("sha256").update(code).digest("base64")}'`,
  );
  await writeFile(join(guidesDist, "build.json"), JSON.stringify({ id, scripts }));
}

/** The page of the API reference, by the library that serves it elsewhere, and its script. */
async function writeReference(folder) {
  const { default: reference } = await import("@scalar/fastify-api-reference");
  const { fastify } = await import("fastify");
  const page = fastify();
  page.register(reference, {
    routePrefix: "/docs",
    configuration: {
      url: "/openapi.json",
      pageTitle: "Paybell API",
      withDefaultFonts: false,
      telemetry: false,
      hideClientButton: true,
      showDeveloperTools: "never",
      mcp: { disabled: true },
      agent: { disabled: true },
    },
  });
  await mkdir(join(folder, "js"), { recursive: true });
  await writeFile(join(folder, "api.html"), (await page.inject("/docs/")).payload);
  await writeFile(join(folder, "js/scalar.js"), (await page.inject("/docs/js/scalar.js")).payload);
  await page.close();
}

/** The licences of all code of others in both sites and in the reference's script: one file for all of them. */
async function writeLicences(folder) {
  const name = "THIRD-PARTY-LICENSES.md";
  const ofSites = ["partners", "operators"].map((readers) => join(guidesDist, readers, name));
  const [sites] = await Promise.all(ofSites.map((path) => readFile(path, "utf8")));
  await Promise.all(ofSites.map((path) => rm(path)));
  const home = join(root, "node_modules/@scalar/fastify-api-reference");
  const { name: scalar, version, license } = JSON.parse(await readFile(join(home, "package.json"), "utf8"));
  const text = await readFile(join(home, "LICENSE"), "utf8");
  const script = await readFile(join(folder, "js/scalar.js"), "utf8");
  const notices = [...new Set(script.match(/\/\*[!*](?:(?!\*\/).)*(?:license|copyright)(?:(?!\*\/).)*\*\//gis))];
  const reference = [
    `## ${scalar} - ${version} (${license})`,
    text,
    "Its script has code with these notices:",
    ...notices,
  ];
  await writeFile(join(folder, name), [sites.trim(), ...reference.map((one) => one.trim())].join("\n\n"));
}

/** A higher brotli quality takes ten times as long for a tenth less. */
const brotliQuality = { params: { [constants.BROTLI_PARAM_QUALITY]: 5 } };

/** So that the service can send it unchanged. */
async function compress(path) {
  const bytes = await readFile(path);
  await writeFile(`${path}.br`, await promisify(brotliCompress)(bytes, brotliQuality));
  await writeFile(`${path}.gz`, await promisify(gzip)(bytes));
}

/** The code of each script that is written in the page itself: the policy allows no other. */
function scriptsOf(html) {
  return [...html.matchAll(/<script(?![^>]*\ssrc=)[^>]*>(.*?)<\/script>/gs)].map(([, code]) => code);
}

/** More than the builds read. What is built below these places, or installed, is not read. */
const inputs = ["docs", "packages", "scripts/pages.js", "package.json", "package-lock.json", "tsconfig.base.json"];
const made = ["dist", "node_modules"];

/** A text that differs if the files differ from which the pages are built, or if something else has built them. */
async function describeBuild(mark) {
  const hash = createHash("sha256");
  for (const path of [...(await Promise.all(inputs.map(filesOf))).flat().sort(), relative(root, mark)]) {
    const bytes = await readFile(join(root, path));
    hash.update(`${path} ${bytes.length}\n`).update(bytes);
  }
  return hash.digest("hex");
}

async function filesOf(path) {
  if (!(await stat(join(root, path))).isDirectory()) return [path];
  const names = (await readdir(join(root, path))).filter((name) => !made.includes(name));
  return (await Promise.all(names.map((name) => filesOf(join(path, name))))).flat();
}

const parts = [
  { name: "console", mark: join(consoleDist, "index.html"), tool: "vite", build: buildConsole },
  { name: "guides", mark: join(guidesDist, "build.json"), tool: "vitepress", build: buildGuides },
];
const options = process.argv.slice(2);
const [wanted] = options.filter((option) => !option.startsWith("--"));
for (const { name, mark, tool, build } of parts) {
  if (wanted !== undefined && wanted !== name) continue;
  const note = join(root, "node_modules/.cache/paybell-pages", name);
  if (options.includes("--if-changed") && existsSync(mark)) {
    const noted = await readFile(note, "utf8").catch(() => "");
    if (noted === (await describeBuild(mark))) continue;
  }
  if (options.includes("--if-missing") && existsSync(mark)) continue;
  if (!existsSync(join(root, "node_modules", tool))) continue;
  if (name === "guides" && options.includes("--guides-later")) {
    spawn(process.execPath, [process.argv[1], name], { detached: true, stdio: "ignore" }).unref();
    continue;
  }
  process.stdout.write(`Building the pages of the ${name}, once: a few seconds …\n`);
  await build();
  await mkdir(dirname(note), { recursive: true });
  await writeFile(note, await describeBuild(mark));
}

import { execFile } from "node:child_process";
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, realpathSync } from "node:fs";
import { basename, dirname, join, posix } from "node:path";
import { promisify } from "node:util";
import { repository } from "./files.ts";

const run = promisify(execFile);

/** An image as built from its Containerfile. */
export interface Image {
  /** The folder that is its root. */
  readonly root: string;
  readonly env: Readonly<Record<string, string>>;
  readonly workdir: string;
  readonly user: string;
  /** ENTRYPOINT, and the CMD that follows it. */
  readonly command: readonly string[];
  /** HEALTHCHECK's command. */
  readonly healthcheck: readonly string[];
}

interface Stage {
  readonly name: string;
  readonly root: string;
  env: Record<string, string>;
  workdir: string;
  user: string;
  entrypoint: readonly string[];
  cmd: readonly string[];
  healthcheck: readonly string[];
}

/**
 * Executes the steps of a Containerfile without a container engine. Files are copied below a folder for each stage;
 * a RUN runs on this machine in the stage's working directory, so it may name relative paths only. The last stage
 * has the needed parts of its base image: Node, and the libraries that it loads.
 *
 * @throws Error for an unknown step, so that none is skipped
 */
export async function assemble(containerfile: string, directory: string): Promise<Image> {
  const stages: Stage[] = [];
  /** Arguments before the first FROM. */
  const bases = new Map<string, string>();
  for (const [instruction, rest] of instructionsOf(readFileSync(containerfile, "utf8"))) {
    if (instruction === "ARG" && stages.length === 0) {
      const [, name = "", value = ""] = /^(\w+)=(\S+)$/.exec(rest) ?? [];
      bases.set(`$\{${name}}`, value);
      continue;
    }
    if (instruction === "FROM") {
      const [, named = "", name = ""] = /^(\S+)(?: AS (\S+))?$/.exec(rest) ?? [];
      const base = (bases.get(named) ?? named).replace("docker.io/library/", "");
      if (!base.startsWith("node:")) throw new Error(`the base image ${base} is not known here`);
      const root = join(directory, name === "" ? "image" : name);
      mkdirSync(root, { recursive: true });
      if (name === "") await addNode(root);
      stages.push({ name, root, env: {}, workdir: "/", user: "0:0", entrypoint: [], cmd: [], healthcheck: [] });
      continue;
    }
    const stage = stages.at(-1);
    if (stage === undefined) throw new Error(`${instruction} stands before FROM`);
    await step(stage, stages, instruction, rest);
  }
  const last = stages.at(-1);
  if (last === undefined) throw new Error("there is no stage");
  const { root, env, workdir, user, healthcheck } = last;
  return { root, env, workdir, user, healthcheck, command: [...last.entrypoint, ...last.cmd] };
}

async function step(stage: Stage, stages: readonly Stage[], instruction: string, rest: string): Promise<void> {
  switch (instruction) {
    case "WORKDIR":
      stage.workdir = posix.resolve(stage.workdir, rest);
      mkdirSync(join(stage.root, stage.workdir), { recursive: true });
      return;
    case "COPY":
      return copy(stage, stages, rest.split(" "));
    case "RUN":
      return runStep(stage, rest);
    case "ENV": {
      const [, name = "", value = ""] = /^(\w+)=(\S+)$/.exec(rest) ?? [];
      if (name === "") throw new Error(`ENV ${rest} is not NAME=value`);
      stage.env = { ...stage.env, [name]: value };
      return;
    }
    case "USER":
      stage.user = rest;
      return;
    case "EXPOSE":
      return;
    case "HEALTHCHECK":
      stage.healthcheck = JSON.parse(rest.slice(rest.indexOf("CMD ") + 4));
      return;
    case "ENTRYPOINT":
      stage.entrypoint = JSON.parse(rest);
      return;
    case "CMD":
      stage.cmd = JSON.parse(rest);
      return;
    default:
      throw new Error(`${instruction} is not known here`);
  }
}

function instructionsOf(text: string): [string, string][] {
  const lines = text.replaceAll("\\\n", " ").split("\n");
  return lines.flatMap((line) => {
    const [, instruction = "", rest = ""] = /^([A-Z]+) (.*)$/.exec(line) ?? [];
    if (instruction !== "") return [[instruction, rest.trim()]];
    if (line === "" || line.startsWith("#")) return [];
    throw new Error(`no instruction: ${line}`);
  });
}

/** Files that git ignores are not copied, as with .containerignore. */
function copy(stage: Stage, stages: readonly Stage[], words: readonly string[]): void {
  const from = words.find((word) => word.startsWith("--from="))?.slice("--from=".length);
  const paths = words.filter((word) => !word.startsWith("--"));
  const target = paths.at(-1) ?? "";
  const source = from === undefined ? repository : (stages.find(({ name }) => name === from)?.root ?? "");
  const ignored = new Set(["node_modules", "dist", ".paybell"]);
  for (const path of paths.slice(0, -1)) {
    const to = join(stage.root, posix.resolve(stage.workdir, target));
    cpSync(join(source, path), target.endsWith("/") || paths.length > 2 ? join(to, basename(path)) : to, {
      recursive: true,
      verbatimSymlinks: true,
      filter: (file) => from !== undefined || !ignored.has(basename(file)),
    });
  }
}

async function runStep(stage: Stage, script: string): Promise<void> {
  const cwd = join(stage.root, stage.workdir);
  if (script === "npm ci --ignore-scripts") {
    // The packages that CI has just installed from the same lock file, to avoid a second download.
    const installed = join(repository, "node_modules");
    const to = join(cwd, "node_modules");
    mkdirSync(to);
    // Other tests, and vitest itself, write there meanwhile.
    const folders = readdirSync(installed).filter((name) => !/^\.(?:cache|vite)/.test(name));
    await run("cp", ["-a", "--link", "--target-directory", to, ...folders.map((name) => join(installed, name))]);
    return;
  }
  if (script === "npm run build") {
    // The pages that are built already: --if-changed takes them if every file is the same that they are built from.
    for (const path of ["packages/console/dist", "docs/.vitepress/dist", "node_modules/.cache/paybell-pages"])
      if (existsSync(join(repository, path))) cpSync(join(repository, path), join(cwd, path), { recursive: true });
  }
  const env = { ...process.env, ...stage.env, npm_config_prefer_offline: "true", npm_config_audit: "false" };
  await run("sh", ["-c", script], { cwd, env, maxBuffer: 64 * 1024 * 1024 });
}

/** Node and the libraries it loads, in the directories of the system's own. */
async function addNode(root: string): Promise<void> {
  for (const folder of ["usr/local/bin", "tmp", "proc", "dev", "run"])
    mkdirSync(join(root, folder), { recursive: true });
  cpSync(realpathSync(process.execPath), join(root, "usr/local/bin/node"));
  const { stdout } = await run("ldd", [process.execPath]);
  for (const [, path = ""] of stdout.matchAll(/(\/\S+) \(0x/g)) {
    mkdirSync(join(root, dirname(path)), { recursive: true });
    if (!existsSync(join(root, path))) cpSync(realpathSync(path), join(root, path));
  }
  if (readdirSync(join(root, "usr/local/bin")).length !== 1) throw new Error("the base image holds more than Node");
}

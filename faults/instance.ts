import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { createWriteStream } from "node:fs";
import { mkdir, readdir, symlink, writeFile } from "node:fs/promises";
import { networkInterfaces } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

/** The repository that an instance is started from: this one, or a copy of it. */
export const ownTree = fileURLToPath(new URL("..", import.meta.url)).replace(/\/$/, "");

/** An address of this machine that production may call; loopback, if it has no other. */
export const ownAddress = externalAddress() ?? "127.0.0.1";

/** `paybell serve` calls no loopback address: where there are no others, the tests' service does, which is the same. */
const program =
  externalAddress() === undefined
    ? ["test/support/instance-fixtures/serve-loopback.ts"]
    : ["packages/cli/bin/paybell.js", "serve"];

function externalAddress(): string | undefined {
  return Object.values(networkInterfaces())
    .flatMap((addresses = []) => addresses)
    .find(({ internal, family }) => !internal && family === "IPv4")?.address;
}

export interface ServiceInstanceOptions {
  readonly tree: string;
  /** Arguments of Node, before the program: `--import` of a hook. */
  readonly nodeArguments?: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly port: number;
  /** The port of the operators' own listener. */
  readonly operatorPort: number;
  /** Every line that it writes is kept in this file, too. */
  readonly logFile?: string | undefined;
}

/** Three stages start nine at a time: a second of a processor each, and more where the machine has other work. */
const readyWithinMs = 180_000;
const stopNoticeMs = 1_000;
const linesMax = 400;

/** One process `paybell serve`, which may be killed, stopped and started again on the same port. */
export class ServiceInstance {
  readonly #options: ServiceInstanceOptions;
  /** The last lines that it wrote. */
  readonly lines: string[] = [];
  #child: ChildProcess | undefined;
  #tree: string;
  #isLeaving = false;

  constructor(options: ServiceInstanceOptions) {
    this.#options = options;
    this.#tree = options.tree;
  }

  /** The URL of a path: the operators have a listener of their own. */
  urlOf(path: string): string {
    const { port, operatorPort } = this.#options;
    return `http://127.0.0.1:${path.startsWith("/operator") ? operatorPort : port}${path}`;
  }

  get isRunning(): boolean {
    return this.#child !== undefined;
  }

  /** Whether a proxy uses it: it has noticed a stop in the middle of the time that it is given. */
  get isUsed(): boolean {
    return this.isRunning && !this.#isLeaving;
  }

  /** The next start is of that tree. */
  useTree(tree: string): void {
    this.#tree = tree;
  }

  /** Resolves when it is ready. */
  async start(): Promise<void> {
    const { nodeArguments = [], env, port, operatorPort, logFile } = this.#options;
    const [file = "", ...first] = program;
    const child = spawn(
      process.execPath,
      ["--conditions=paybell-source", ...nodeArguments, join(this.#tree, file), ...first],
      {
        env: {
          PATH: process.env["PATH"] ?? "",
          ...env,
          PAYBELL_PORT: String(port),
          PAYBELL_OPERATOR_PORT: String(operatorPort),
          PAYBELL_STOP_NOTICE_MS: String(stopNoticeMs),
        },
        stdio: ["ignore", "pipe", "pipe"],
      },
    );
    this.#child = child;
    this.#isLeaving = false;
    const log = logFile === undefined ? undefined : createWriteStream(logFile, { flags: "a" });
    for (const stream of [child.stdout, child.stderr]) if (log) stream.pipe(log, { end: false });
    child.once("close", () => log?.end());
    child.once("exit", () => {
      if (this.#child === child) this.#child = undefined;
    });
    await this.#ready(child);
  }

  signal(signal: NodeJS.Signals): void {
    this.#child?.kill(signal);
  }

  /** Kills it, as when the machine fails. Resolves when it has ended. */
  async kill(): Promise<void> {
    await this.#end("SIGKILL");
  }

  /** A clean stop: it hands over what it has. */
  async stop(): Promise<void> {
    const noticed = setTimeout(() => {
      this.#isLeaving = true;
    }, stopNoticeMs / 2);
    await this.#end("SIGTERM");
    clearTimeout(noticed);
  }

  async #end(signal: NodeJS.Signals): Promise<void> {
    const child = this.#child;
    if (child === undefined) return;
    // Its last lines are read by then.
    const gone = once(child, "close");
    child.kill(signal);
    await gone;
  }

  #ready(child: ChildProcess): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const fail = (why: string) => reject(new Error(`An instance ${why}:\n${this.lines.slice(-15).join("\n")}`));
    const timer = setTimeout(() => fail(`was not ready within ${readyWithinMs / 1_000} s`), readyWithinMs);
    for (const stream of [child.stdout, child.stderr]) {
      if (stream === null) continue;
      createInterface(stream).on("line", (line) => {
        this.lines.push(line);
        if (this.lines.length > linesMax) this.lines.splice(0, linesMax / 2);
        if (line.includes('"ready"')) resolve();
      });
    }
    child.once("exit", (code, signal) => fail(`ended with ${signal ?? code} before it was ready`));
    return promise.finally(() => clearTimeout(timer));
  }
}

const migrations = "packages/server/src/store/schema/migrations";
/** After every real one. */
const firstNumber = 9_001;
/** The tables that every command or delivery reads and writes. */
const tables = ["transactions", "notifications", "pending", "terminals", "endpoints", "partners"];

/**
 * A later version of Paybell: a copy of these sources with more migrations, which add a column to each busy table.
 * Statements that the previous version has prepared must still work.
 *
 * @param version 1 is the next one, 2 the one after it
 */
export async function makeNewerTree(folder: string, version: number): Promise<string> {
  const tree = join(folder, `version-${version}`);
  await mkdir(join(tree, "test/support"), { recursive: true });
  // By a process of its own: file by file it would take this one, which has the load to answer, a minute.
  for (const part of ["packages", "test/support/instance-fixtures"])
    await promisify(execFile)("cp", ["-R", join(ownTree, part), join(tree, part)]);
  await linkModules(tree);
  for (const [at, name] of Array.from({ length: version }, () => tables)
    .flat()
    .entries()) {
    const number = firstNumber + at;
    const mark = name === "partners" ? "" : "--! homes\n";
    const sql = `${mark}ALTER TABLE ${name} ADD COLUMN of_migration_${number} text;\n`;
    await writeFile(join(tree, migrations, `${number}_${name}.sql`), sql);
  }
  return tree;
}

/** The packages of the copy find each other there; what is installed they find a folder higher, where it is shared. */
async function linkModules(tree: string): Promise<void> {
  const installed = join(ownTree, "node_modules");
  const linked = join(tree, "node_modules/@paybell");
  await mkdir(linked, { recursive: true });
  for (const name of await readdir(join(installed, "@paybell")))
    await symlink(join(tree, "packages", name), join(linked, name));
  await symlink(installed, join(tree, "../node_modules")).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== "EEXIST") throw error;
  });
}

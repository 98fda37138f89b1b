import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:net";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

/** The repository that an instance is started from: this one, or a copy of it. */
export const ownTree = fileURLToPath(new URL("..", import.meta.url)).replace(/\/$/, "");

export interface ServiceInstanceOptions {
  readonly tree: string;
  /** The program, by its path in the tree, and its first arguments. */
  readonly program: readonly string[];
  /** Arguments of Node, before the program: `--import` of a hook. */
  readonly nodeArguments: readonly string[];
  /** Arguments of `paybell serve`, such as `--role delivery`. */
  readonly serveArguments: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly port: number;
  /** The port of the operators' own listener. */
  readonly operatorPort: number;
}

/** Three stages start nine at a time: a second of a processor each, and more where the machine has other work. */
const readyWithinMs = 180_000;
const stopNoticeMs = 1_000;
const linesMax = 400;
const errorLevel = /"level":("error"|50)/;

/** One process `paybell serve`, which may be killed, stopped and started again on the same port. */
export class ServiceInstance {
  readonly #options: ServiceInstanceOptions;
  readonly #lines: string[] = [];
  #lastError = "";
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

  /** The last lines that it wrote. */
  get lines(): readonly string[] {
    return this.#lines;
  }

  /** The last line that tells of an error. */
  get lastError(): string {
    return this.#lastError;
  }

  /** The next start is of that tree. */
  useTree(tree: string): void {
    this.#tree = tree;
  }

  /** Resolves when it is ready. */
  async start(): Promise<void> {
    const { program, nodeArguments, serveArguments, env, port, operatorPort } = this.#options;
    const [file = "", ...first] = program;
    const child = spawn(
      process.execPath,
      ["--conditions=paybell-source", ...nodeArguments, join(this.#tree, file), ...first, ...serveArguments],
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
    const gone = once(child, "exit");
    child.kill(signal);
    await gone;
  }

  #ready(child: ChildProcess): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const fail = (why: string) => reject(new Error(`An instance ${why}:\n${this.#lines.slice(-15).join("\n")}`));
    const timer = setTimeout(() => fail(`was not ready within ${readyWithinMs / 1_000} s`), readyWithinMs);
    for (const stream of [child.stdout, child.stderr]) {
      if (stream === null) continue;
      createInterface(stream).on("line", (line) => {
        this.#lines.push(line);
        if (errorLevel.test(line)) this.#lastError = line;
        if (this.#lines.length > linesMax) this.#lines.splice(0, linesMax / 2);
        if (line.includes('"ready"')) resolve();
      });
    }
    child.once("exit", (code, signal) => fail(`ended with ${signal ?? code} before it was ready`));
    return promise.finally(() => clearTimeout(timer));
  }
}

/** A port that was free a moment ago. */
export async function freePort(): Promise<number> {
  const server = createServer();
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  server.close();
  await once(server, "close");
  if (address === null || typeof address === "string") throw new Error("A TCP server has no port.");
  return address.port;
}

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { Readable, Writable } from "node:stream";
import { patternOf } from "./shown.ts";

/**
 * Stands in the script's process group, and reads a pipe of the test's process: a line says that the script has ended.
 * The pipe's end says that the test's process has, by Ctrl-C or kill -9: then nothing may go on. SIGINT comes first, so
 * that a sandbox can stop its PostgreSQL; this part itself, in the background, ignores it.
 */
const watch = `{ read -r <&3 || { kill -INT 0; sleep 10; kill -KILL 0; }; } >/dev/null 2>&1 & exec 3<&-\n`;

/** One of a reader's terminals: what runs in it, and what it has shown that no step has asked for yet. */
export class TerminalScreen {
  cwd: string;
  readonly #env: NodeJS.ProcessEnv;
  readonly #all: string[] = [];
  readonly #lines: string[] = [];
  readonly #listeners = new Set<() => void>();
  #running: ChildProcess | undefined;

  constructor(cwd: string, env: NodeJS.ProcessEnv = process.env) {
    this.cwd = cwd;
    this.#env = env;
  }

  get output(): string {
    return this.#lines.join("\n");
  }

  /** Starts a script of bash, and resolves to its exit code when it has ended. */
  start(script: string): Promise<number | null> {
    const after = `trap 'pwd > "${join(this.cwd, ".cwd")}"' EXIT\n`;
    // A separate process group, so that Ctrl-C reaches only the shell's processes.
    const child = spawn("bash", ["-euo", "pipefail", "-c", watch + after + script], {
      cwd: this.cwd,
      detached: true,
      env: this.#env,
      stdio: ["ignore", "pipe", "pipe", "pipe"],
    });
    this.#running = child;
    for (const stream of [child.stdout, child.stderr]) {
      createInterface(stream as Readable).on("line", (line) => {
        this.#all.push(line);
        this.#lines.push(line);
        for (const listener of this.#listeners) listener();
      });
    }
    child.once("exit", () => (child.stdio[3] as Writable).end("\n"));
    return once(child, "close").then(([code]) => {
      this.#running = undefined;
      for (const listener of this.#listeners) listener();
      return code as number | null;
    });
  }

  /** Runs a script to its end; the next one begins in the folder where it ended. */
  async run(script: string): Promise<void> {
    const from = this.cwd;
    const code = await this.start(script);
    if (code !== 0) throw new Error(`it ended with ${code}:\n${this.output}`);
    this.cwd = readFileSync(join(from, ".cwd"), "utf8").trim();
  }

  /** Waits until it has shown a line like this one, after those that were asked for before. */
  async shows(line: string): Promise<void> {
    const pattern = patternOf(line);
    const find = () => this.#lines.findIndex((shown) => pattern.test(shown)) + 1;
    this.#lines.splice(0, await this.#until(find, line));
  }

  /** Waits until it has shown these lines one after another, whenever that was. Empty ones do not count. */
  async showsTogether(text: string): Promise<void> {
    const patterns = text.split("\n").filter(isWritten).map(patternOf);
    await this.#until(() => {
      const shown = this.#all.filter(isWritten);
      return shown.findIndex((_, at) => patterns.every((pattern, line) => pattern.test(shown[at + line] ?? ""))) + 1;
    }, text);
  }

  /** Asks with each line that comes, until the answer is not 0. */
  #until(find: () => number, what: string): Promise<number> {
    return new Promise((resolve, reject) => {
      let late = false;
      const look = () => {
        const found = find();
        if (found === 0 && this.#running !== undefined && !late) return;
        clearTimeout(limit);
        this.#listeners.delete(look);
        if (found === 0) reject(new Error(`it never showed "${what}", but:\n${this.#all.join("\n")}`));
        else resolve(found);
      };
      const limit = setTimeout(() => {
        late = true;
        look();
      }, 880_000);
      this.#listeners.add(look);
      look();
    });
  }

  /** Ctrl-C. */
  async interrupt(): Promise<void> {
    const child = this.#running;
    if (child?.pid === undefined) return;
    const closed = once(child, "close");
    process.kill(-child.pid, "SIGINT");
    await closed;
  }
}

function isWritten(line: string): boolean {
  return line.trim() !== "";
}

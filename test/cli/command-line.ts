import { EventEmitter } from "node:events";
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PassThrough, Readable, Writable } from "node:stream";
import { expect } from "vitest";
import { type ExitCode, run } from "../../packages/cli/src/index.ts";

export interface CommandResult {
  readonly code: ExitCode;
  readonly stdout: string;
  readonly stderr: string;
  /** The output with --json. */
  json<Value = Record<string, unknown>>(): Value;
}

export interface Running {
  readonly ended: Promise<CommandResult>;
  stdout(): string;
  stderr(): string;
  /** Resolves once either stream says it. */
  said(what: string | RegExp, times?: number): Promise<void>;
  /** Types a line at the terminal. */
  type(line: string): void;
  /** Ctrl-C. */
  interrupt(): void;
}

export interface StartOptions {
  readonly env?: Readonly<Record<string, string>>;
  readonly stdin?: string;
  readonly fetch?: typeof fetch;
  readonly nowMs?: () => number;
  /** Whether its output is a terminal. */
  readonly isTerminal?: boolean;
}

/** A folder of its own, in which commands run in this process as at a terminal. */
export class CommandLine {
  readonly folder = mkdtempSync(join(tmpdir(), "paybell-cli-"));
  readonly #env: Readonly<Record<string, string>>;

  constructor(env: Readonly<Record<string, string>> = {}) {
    this.#env = env;
    // PostgreSQL's own user can enter, so that a service's data is here, too, and is removed with the rest.
    chmodSync(this.folder, 0o711);
  }

  write(name: string, content: string | object): string {
    const path = join(this.folder, name);
    writeFileSync(path, typeof content === "string" ? content : JSON.stringify(content));
    return name;
  }

  run(args: readonly string[], start: StartOptions = {}): Promise<CommandResult> {
    return this.start(args, start).ended;
  }

  /** Runs a command that must succeed. */
  async ok(...args: string[]): Promise<CommandResult> {
    const ran = await this.run(args);
    expect(ran.code, ran.stderr).toBe(0);
    return ran;
  }

  start(args: readonly string[], start: StartOptions = {}): Running {
    const interruption = new AbortController();
    const [stdout, stderr] = [new Recorder(), new Recorder()];
    const terminal = Object.assign(new PassThrough(), { isTTY: start.stdin === undefined });
    const stdin = start.stdin === undefined ? terminal : Readable.from([Buffer.from(start.stdin)]);
    const env = { ...this.#env, ...start.env };
    const { pid, versions } = process;
    const own = { argv: args, env, stdout, stderr, pid, versions, cwd: () => this.folder };
    const ended = run(args, {
      stdin,
      stdout: start.isTerminal === true ? Object.assign(stdout, { isTTY: true }) : stdout,
      stderr,
      env,
      workingDirectory: this.folder,
      fetch: start.fetch ?? fetch,
      signal: interruption.signal,
      nowMs: start.nowMs ?? (() => Date.now()),
      // Of the commands that run the service, or a part of it.
      process: Object.assign(new EventEmitter(), own) as unknown as NodeJS.Process,
    }).then((code) => ({
      code,
      stdout: stdout.text,
      stderr: stderr.text,
      json: <Value>() => JSON.parse(stdout.text) as Value,
    }));
    return {
      ended,
      stdout: () => stdout.text,
      stderr: () => stderr.text,
      said: (what, times = 1) => Promise.race([stdout.until(what, times), stderr.until(what, times), tooEarly(ended)]),
      type: (line) => void terminal.write(`${line}\n`),
      interrupt: () => interruption.abort("SIGINT"),
    };
  }

  remove(): void {
    rmSync(this.folder, { recursive: true, force: true });
  }
}

async function tooEarly(ended: Promise<CommandResult>): Promise<never> {
  const { code, stdout, stderr } = await ended;
  throw new Error(`it ended with ${code} before it said so:\n${stdout}\n${stderr}`);
}

/** Records the output, and wakes tests that wait for some text. */
class Recorder extends Writable {
  text = "";
  readonly #waiting = new Set<() => void>();

  override _write(chunk: Buffer, _: BufferEncoding, done: () => void): void {
    this.text += chunk.toString("utf8");
    for (const look of this.#waiting) look();
    done();
  }

  until(what: string | RegExp, times: number): Promise<void> {
    return new Promise((resolve) => {
      const look = () => {
        const count = typeof what === "string" ? this.text.split(what).length - 1 : matches(this.text, what);
        if (count < times) return;
        this.#waiting.delete(look);
        resolve();
      };
      this.#waiting.add(look);
      look();
    });
  }
}

function matches(text: string, what: RegExp): number {
  return [...text.matchAll(new RegExp(what.source, "g"))].length;
}

import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { type IncomingHttpHeaders, request } from "node:http";
import { text } from "node:stream/consumers";

export interface ProgramResult {
  /** Null if the program did not start, or was stopped because it took too long. */
  readonly exitCode: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface ProgramEnvironment {
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly timeoutMs: number;
}

export type ShellCommand = readonly [program: string, ...args: string[]];

/** Runs a program to its end. A failure is a result too. */
export function run(
  [program, ...args]: ShellCommand,
  { cwd, env, timeoutMs }: ProgramEnvironment,
): Promise<ProgramResult> {
  const options = { cwd, env: { ...process.env, ...env }, timeout: timeoutMs, maxBuffer: 64 * 1024 * 1024 };
  return new Promise((resolve) => {
    execFile(program, args, options, (error, stdout, stderr) => {
      if (error === null) resolve({ exitCode: 0, stdout, stderr });
      else resolve({ exitCode: typeof error.code === "number" ? error.code : null, stdout, stderr });
    });
  });
}

export interface Server {
  readonly url: string;
  /** Everything it wrote, to both streams. */
  output(): string;
  /** Resolves when its output from now on contains a match. */
  said(pattern: RegExp): Promise<void>;
  stop(): Promise<void>;
}

/** Starts a server on a free port, and resolves when it reports that it listens. */
export async function startServer(
  [program, ...args]: ShellCommand,
  port: number,
  { cwd, env, timeoutMs }: ProgramEnvironment,
): Promise<Server> {
  const child = spawn(program, args, { cwd, env: { ...process.env, ...env }, stdio: ["ignore", "pipe", "pipe"] });
  let written = "";
  const listeners = new Set<() => void>();
  const hear = (chunk: string) => {
    written += chunk;
    for (const listener of listeners) listener();
  };
  const said = (pattern: RegExp, from = written.length) =>
    new Promise<void>((resolve) => {
      const listener = () => {
        if (!pattern.test(written.slice(from))) return;
        listeners.delete(listener);
        resolve();
      };
      listeners.add(listener);
      listener();
    });
  const { promise: failed, reject } = Promise.withResolvers<never>();
  child.stdout.setEncoding("utf8").on("data", hear);
  child.stderr.setEncoding("utf8").on("data", hear);
  child.once("error", reject);
  child.once("close", () => reject(new Error(`${program} ended before it listened:\n${written}`)));
  const tooLate = () => reject(new Error(`${program} did not listen within ${timeoutMs} ms:\n${written}`));
  const timer = setTimeout(tooLate, timeoutMs);
  try {
    await Promise.race([said(/listening on|Development Server .* started|Tomcat started on/i), failed]);
  } catch (error) {
    await stop(child);
    throw error;
  } finally {
    clearTimeout(timer);
  }
  return {
    url: `http://127.0.0.1:${port}/ipn`,
    output: () => written,
    said: (pattern) => said(pattern),
    stop: () => stop(child),
  };
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, "close");
  child.kill("SIGKILL");
  await ended;
}

export interface ProgramResponse {
  readonly status: number | undefined;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

/** One request on a connection of its own. */
export async function send(
  url: string,
  method: string,
  headers: Readonly<Record<string, string>>,
  body: string,
): Promise<ProgramResponse> {
  const bytes = Buffer.from(body);
  const length = method === "GET" ? {} : { "content-length": String(bytes.length) };
  const sent = request(url, { method, agent: false, headers: { ...headers, ...length } });
  const answered = new Promise<ProgramResponse>((resolve, reject) => {
    sent.on("error", reject);
    sent.on("response", (response) => {
      text(response).then((all) => {
        resolve({ status: response.statusCode, headers: response.headers, body: all });
      }, reject);
    });
  });
  sent.end(method === "GET" ? undefined : bytes);
  return await answered;
}

import { type ChildProcess, spawn } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { freePort } from "./ports.ts";
import { callbackCa, machineAddresses } from "./receiver.ts";
import { operatorToken, type ServiceClient, serviceClient } from "./service.ts";

const ownTree = join(import.meta.dirname, "../..");
const cli = "packages/cli/bin/paybell.js";
/** Of programs that do not choose one themselves as `paybell` does: types are stripped once, not at every start. */
export const compiledCode = join(ownTree, "node_modules/.cache/paybell");
const localFixture = "test/support/instance-fixtures/serve-loopback.ts";

/** Reads lines as the process writes them, until the expected one. */
export interface SpokenProcess {
  readonly pid: number;
  /** Everything it wrote, to both streams. */
  output(): string;
  /** The first line, from the beginning, that `matches` finds something in. */
  said<Found>(matches: (line: string) => Found | undefined | null): Promise<Found>;
  signal(signal: NodeJS.Signals): void;
  /** Stops reading: later output fails, as in a terminal that was closed. */
  stopListening(): void;
  /** Its exit code once it has ended; null when a signal ended it. */
  readonly exited: Promise<number | null>;
}

/** One instance of the service in a process of its own. */
export interface Instance extends SpokenProcess, ServiceClient {
  readonly operatorUrl: string;
}

export interface InstanceOptions {
  readonly databaseUrl: string;
  readonly masterKey: Buffer;
  /** Also calls loopback addresses: not `paybell serve`, which never does, but the same service (serve-loopback.ts). */
  readonly callsLoopback?: boolean;
  readonly env?: NodeJS.ProcessEnv;
  /** The checkout whose service it is; default: this one. */
  readonly tree?: string;
}

/** The address on which partners of instances in processes listen, and whether `paybell serve` may call it. */
export function partnerHost(): { readonly host: string; readonly callsLoopback: boolean } {
  const [address] = machineAddresses();
  // On a machine without any network there is nothing that production may call.
  return address === undefined ? { host: "127.0.0.1", callsLoopback: true } : { host: address, callsLoopback: false };
}

export function spawnPaybell(args: readonly string[], env: NodeJS.ProcessEnv): SpokenProcess {
  return spawnNode([join(ownTree, cli), ...args], env);
}

/** Starts an instance on the database and resolves when it is ready. */
export async function spawnInstance(options: InstanceOptions): Promise<Instance> {
  const home = await mkdtemp(join(tmpdir(), "paybell-instance-"));
  const caFile = join(home, "callback-ca.pem");
  await writeFile(caFile, await callbackCa());
  const program = options.callsLoopback === true ? [localFixture] : [cli, "serve"];
  const [path = "", ...args] = program;
  const child = spawnNode([join(options.tree ?? ownTree, path), ...args], {
    DATABASE_URL: options.databaseUrl,
    PAYBELL_MASTER_KEY: options.masterKey.toString("base64"),
    PAYBELL_OPERATOR_TOKEN: operatorToken,
    PAYBELL_ACQUIRER: "simulator",
    PAYBELL_CALLBACK_CA_FILE: caFile,
    PAYBELL_HOME: home,
    PAYBELL_HOST: "127.0.0.1",
    PAYBELL_PORT: String(await freePort()),
    PAYBELL_OPERATOR_PORT: String(await freePort()),
    // No proxy has to notice. A release may not know this setting.
    ...(options.tree === undefined && { PAYBELL_STOP_NOTICE_MS: "0" }),
    ...options.env,
  });
  const exited = child.exited.then(async (code) => {
    await rm(home, { recursive: true, force: true });
    return code;
  });
  const { urls, operatorUrls = urls } = await child.said((line) => {
    if (!line.includes('"ready"')) return undefined;
    return JSON.parse(line) as { urls: string[]; operatorUrls?: string[] };
  });
  const [operatorUrl = ""] = operatorUrls;
  return { ...child, ...serviceClient(urls[0] ?? "", operatorUrl), operatorUrl, exited };
}

function spawnNode(args: readonly string[], env: NodeJS.ProcessEnv): SpokenProcess {
  const own = { PATH: process.env["PATH"], NODE_COMPILE_CACHE: compiledCode, ...env };
  return spawnProgram(process.execPath, ["--conditions=paybell-source", ...args], { env: own });
}

export function spawnProgram(
  path: string,
  args: readonly string[],
  options: { readonly env: NodeJS.ProcessEnv; readonly cwd?: string },
): SpokenProcess {
  const child = spawn(path, args, { ...options, stdio: ["ignore", "pipe", "pipe"] });
  return { pid: child.pid ?? 0, ...listenTo(child) };
}

function listenTo(child: ChildProcess): Omit<SpokenProcess, "pid"> {
  const lines: string[] = [];
  const listeners = new Set<(line: string) => void>();
  for (const stream of [child.stdout, child.stderr]) {
    if (stream === null) continue;
    createInterface(stream).on("line", (line) => {
      lines.push(line);
      for (const listener of listeners) listener(line);
    });
  }
  const exited = new Promise<number | null>((resolve) => child.once("close", (code) => resolve(code)));
  const output = () => lines.join("\n");
  return {
    output,
    exited,
    signal: (signal) => void child.kill(signal),
    stopListening() {
      child.stdout?.destroy();
      child.stderr?.destroy();
    },
    said: (matches) =>
      new Promise((resolve, reject) => {
        const listener = (line: string) => {
          const found = matches(line);
          if (found === undefined || found === null) return;
          listeners.delete(listener);
          resolve(found);
        };
        listeners.add(listener);
        void exited.then((code) => reject(new Error(`it ended with ${code} before it said so:\n${output()}`)));
        for (const line of [...lines]) if (listeners.has(listener)) listener(line);
      }),
  };
}

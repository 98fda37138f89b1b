import { chmod, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Client } from "pg";
import { type EmbeddedPostgres, startEmbeddedPostgres } from "../packages/server/src/postgres/embedded.ts";
import { loopbackCertificate } from "../packages/server/src/sandbox/credentials.ts";
import type { CallbackTarget } from "./callback.ts";
import { type Process, startProcess } from "./processes/channel.ts";
import type { receiverMethods } from "./processes/receiver.ts";
import { type RedisServer, startRedis } from "./redis.ts";

export type ReceiverProcess = Process<ReturnType<typeof receiverMethods>>;

/** Everything that the rows share: a folder, the receiver, PostgreSQL with fsync on, Redis. */
export interface BenchEnvironment {
  readonly folder: string;
  readonly target: CallbackTarget;
  /** PEM, of the receiver and of every other callback server here. */
  readonly certificate: { readonly key: string; readonly cert: string };
  readonly receiver: ReceiverProcess;
  readonly postgres: EmbeddedPostgres;
  /** Undefined where it is not wanted or not installed. */
  readonly redis: RedisServer | undefined;
  /** An empty database of this name, and its URL. */
  newDatabase(name: string): Promise<string>;
}

/**
 * Runs steps last in, first out, each only once. A failed step does not prevent the others, and a step added after the
 * run began, by a start that was in progress, runs at once.
 */
export class Cleanup {
  readonly #steps: (() => Promise<unknown> | unknown)[] = [];
  readonly #folders: string[] = [];
  #began = false;

  add(step: () => Promise<unknown> | unknown): void {
    this.#steps.push(step);
    if (this.#began) void this.run();
  }

  /** Removed at the end of every run: what was still starting may have made it again. */
  addFolder(path: string): void {
    this.#folders.push(path);
  }

  async run(): Promise<void> {
    this.#began = true;
    for (let step = this.#steps.pop(); step !== undefined; step = this.#steps.pop()) {
      await Promise.resolve(step()).catch(() => undefined);
    }
    for (const path of this.#folders) await rm(path, { recursive: true, force: true }).catch(() => undefined);
  }
}

/** A start that Ctrl-C came into ends first: nobody else would stop what it began. */
const startEndsWithinMs = 15_000;

/**
 * Runs a command until it ends or a signal stops it, and cleans up.
 *
 * @returns its exit code: what `run` resolves to, 1 if it rejects, 130 after a signal
 */
export async function runCommand(run: (cleanup: Cleanup) => Promise<number>): Promise<number> {
  const cleanup = new Cleanup();
  const interrupted = Promise.withResolvers<130>();
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.once(signal, () => interrupted.resolve(130));
  const running = run(cleanup).catch((error) => {
    process.stderr.write(`${error instanceof Error ? error.stack : error}\n`);
    return 1;
  });
  const code = await Promise.race([running, interrupted.promise]);
  await cleanup.run();
  if (code === 130) {
    await Promise.race([running, new Promise((resolve) => setTimeout(resolve, startEndsWithinMs))]);
    await cleanup.run();
  }
  return code;
}

export async function startEnvironment(
  cleanup: Cleanup,
  wanted: { readonly redis: boolean; readonly postgresSettings: Readonly<Record<string, string>> },
): Promise<BenchEnvironment> {
  const folder = await mkdtemp(join(tmpdir(), "paybell-bench-"));
  cleanup.addFolder(folder);
  // As root, PostgreSQL runs as another user, who passes through here.
  await chmod(folder, 0o711);
  const certificate = await loopbackCertificate(folder);
  const receiver: ReceiverProcess = startProcess(new URL("./processes/receiver.ts", import.meta.url));
  cleanup.add(() => receiver.stop());
  const { key, cert, ca } = certificate;
  const url = await receiver.ask("serve", { key, cert });
  const postgres = await startEmbeddedPostgres({
    home: join(folder, "home"),
    systemDirectory: join(folder, "system"),
    log: () => undefined,
    settings: wanted.postgresSettings,
  });
  cleanup.add(() => postgres.stop());
  const redis = wanted.redis ? await startRedis(folder) : undefined;
  if (redis) cleanup.add(() => redis.stop());
  return {
    folder,
    target: { url, ca },
    certificate: { key, cert },
    receiver,
    postgres,
    redis,
    newDatabase: (name) => newDatabase(postgres.superuserConnectionString, name),
  };
}

async function newDatabase(serverUrl: string, name: string): Promise<string> {
  const client = new Client({ connectionString: serverUrl });
  await client.connect();
  try {
    await client.query(`CREATE DATABASE ${client.escapeIdentifier(name)}`);
  } finally {
    await client.end();
  }
  const [start = "", query = ""] = serverUrl.split("?", 2);
  return `${start.slice(0, start.lastIndexOf("/"))}/${name}?${query}`;
}

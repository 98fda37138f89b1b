import { chmod, mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Client } from "pg";
import { type EmbeddedPostgres, startEmbeddedPostgres } from "../packages/server/src/postgres/embedded.ts";
import { loopbackCertificate } from "../packages/server/src/sandbox/credentials.ts";
import type { CallbackTarget } from "./callback.ts";
import type { Cleanup } from "./command.ts";
import { type Process, startProcess } from "./processes/channel.ts";
import type { receiverMethods } from "./processes/receiver.ts";
import { type RedisServer, startRedis } from "./redis.ts";

export type ReceiverProcess = Process<ReturnType<typeof receiverMethods>>;

/** Statements are measured only where a database asks for it, because that costs each row. */
const statementSettings = { shared_preload_libraries: "pg_stat_statements", "pg_stat_statements.track": "none" };

/** Everything that the rows share: the receiver, PostgreSQL with fsync on, Redis. */
export interface BenchEnvironment {
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

export async function startEnvironment(cleanup: Cleanup, hasRedis = false): Promise<BenchEnvironment> {
  const { folder, postgres } = await startPostgres(cleanup, statementSettings);
  const certificate = await loopbackCertificate(folder);
  const receiver: ReceiverProcess = startProcess(new URL("./processes/receiver.ts", import.meta.url));
  cleanup.add(() => receiver.stop());
  const { key, cert, ca } = certificate;
  const url = await receiver.ask("serve", { key, cert });
  const redis = hasRedis ? await startRedis(folder) : undefined;
  if (redis) cleanup.add(() => redis.stop());
  return {
    target: { url, ca },
    certificate: { key, cert },
    receiver,
    postgres,
    redis,
    newDatabase: (name) => newDatabase(postgres.superuserConnectionString, name),
  };
}

/** A PostgreSQL in a folder for all that a run writes, both gone at its end. */
export async function startPostgres(cleanup: Cleanup, settings: Readonly<Record<string, string>> = {}) {
  const folder = await mkdtemp(join(tmpdir(), "paybell-bench-"));
  cleanup.addFolder(folder);
  // As root, PostgreSQL runs as another user, who passes through here.
  await chmod(folder, 0o711);
  const places = { home: join(folder, "home"), systemDirectory: join(folder, "system") };
  const postgres = await startEmbeddedPostgres({ ...places, log: () => undefined, settings });
  cleanup.add(() => postgres.stop());
  return { folder, postgres };
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

import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { chmod, chown, mkdir, open, readdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { promisify } from "node:util";
import { Client } from "pg";
import { installedBinaries, usableBinaries } from "../packages/server/src/postgres/binaries.ts";
import { postgresAccount } from "../packages/server/src/postgres/location.ts";
import type { Account } from "../packages/server/src/postgres/process.ts";
import { defaultSettings, settingArguments } from "../packages/server/src/postgres/settings.ts";
import { freePort } from "../test/support/ports.ts";

const run = promisify(execFile);

/** PostgreSQL's programs, and the account that runs them: it refuses to run as root. */
export interface PostgresPrograms {
  /** Their folder. */
  readonly bin: string;
  readonly account: Account | undefined;
}

/** Those of the embedded PostgreSQL. @param folder where they are copied when PostgreSQL's user cannot enter theirs */
export async function embeddedPrograms(folder: string): Promise<PostgresPrograms> {
  const account = await postgresAccount(join(folder, "nothing-there"));
  const { native } = await usableBinaries(await installedBinaries(), account, folder);
  return { bin: join(native, "bin"), account };
}

type Settings = Readonly<Record<string, string>>;

/** Of one that has the load of a stage. */
export const loadSettings: Settings = {
  ...defaultSettings,
  shared_buffers: "128MB",
  max_connections: "120",
  // Enough for a standby to be cloned under load, and not more than a small disk holds.
  max_wal_size: "256MB",
  min_wal_size: "64MB",
  wal_keep_size: "128MB",
  max_wal_senders: "4",
  // A standby that is promoted must not wait for messages of one that is gone.
  wal_receiver_timeout: "5s",
  log_min_messages: "warning",
};

const lookEveryMs = 50;
/** After a `kill -9` its own processes need a moment to notice, and PostgreSQL refuses to start beside them. */
const leftoversTimeoutMs = 15_000;
const leftoversPauseMs = 200;

/** One PostgreSQL on 127.0.0.1, with a data directory of its own, which may die and be started again. */
export class PostgresServer {
  readonly #programs: PostgresPrograms;
  readonly #folder: string;
  readonly #settings: Settings;
  port = 0;
  #child: ChildProcess | undefined;

  constructor(folder: string, programs: PostgresPrograms, settings: Settings) {
    this.#folder = folder;
    this.#programs = programs;
    this.#settings = settings;
  }

  get dataDirectory(): string {
    return join(this.#folder, "data");
  }

  get account(): Account | undefined {
    return this.#programs.account;
  }

  get address(): { readonly host: string; readonly port: number } {
    return { host: "127.0.0.1", port: this.port };
  }

  get isRunning(): boolean {
    return this.#child !== undefined;
  }

  /** Its port, and its folder, which PostgreSQL's user can enter. */
  async prepare(): Promise<void> {
    this.port = await freePort();
    await mkdir(this.#folder, { recursive: true, mode: 0o755 });
    await own(this.#folder, this.account);
  }

  async initialise(): Promise<void> {
    await this.prepare();
    // Nobody else reaches these servers, and they are thrown away.
    const how = ["-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "-N"];
    const initdb = join(this.#programs.bin, "initdb");
    await run(initdb, ["-D", this.dataDirectory, ...how], { ...this.account, cwd: "/" });
  }

  /** Resolves when it answers, recovered from its log. @param more settings of this start */
  async start(more: Settings = {}): Promise<void> {
    const deadlineMs = performance.now() + leftoversTimeoutMs;
    while (!(await this.#launch(more))) {
      if (performance.now() > deadlineMs) throw new Error(`PostgreSQL does not start: ${this.#log} says why.`);
      await pause(leftoversPauseMs);
    }
  }

  /** As in a power cut: it writes nothing more. Resolves when it is gone. */
  async kill(): Promise<void> {
    await this.#end("SIGKILL");
  }

  /** Immediately: nobody needs what it holds any more. */
  async stop(): Promise<void> {
    await this.#end("SIGQUIT");
  }

  url(database = "postgres"): string {
    return `postgres://postgres@127.0.0.1:${this.port}/${database}`;
  }

  async query(sql: string, values: readonly unknown[] = [], database = "postgres"): Promise<Record<string, unknown>[]> {
    return this.session(async (client) => (await client.query(sql, [...values])).rows, database);
  }

  async session<Result>(use: (client: Client) => Promise<Result>, database = "postgres"): Promise<Result> {
    const url = this.url(database);
    const client = new Client({ connectionString: url, connectionTimeoutMillis: 10_000, application_name: "faults" });
    client.on("error", () => undefined);
    try {
      await client.connect();
      return await use(client);
    } finally {
      await client.end().catch(() => undefined);
    }
  }

  get #log(): string {
    return join(this.#folder, "postgres.log");
  }

  /** @returns whether it answers; otherwise it has ended */
  async #launch(more: Settings): Promise<boolean> {
    const log = await open(this.#log, "a");
    const settings = { listen_addresses: "127.0.0.1", unix_socket_directories: "", ...this.#settings, ...more };
    const options = settingArguments({ ...settings, port: String(this.port) });
    const child = spawn(join(this.#programs.bin, "postgres"), ["-D", this.dataDirectory, ...options], {
      ...this.account,
      cwd: "/",
      // Ctrl-C ends the run, which stops it then.
      detached: true,
      stdio: ["ignore", log.fd, log.fd],
    });
    await log.close();
    this.#child = child;
    child.once("exit", () => {
      if (this.#child === child) this.#child = undefined;
    });
    while (this.#child === child) {
      if (await this.query("SELECT").then(Boolean, () => false)) return true;
      await pause(lookEveryMs);
    }
    return false;
  }

  async #end(signal: NodeJS.Signals): Promise<void> {
    const child = this.#child;
    if (child === undefined) return;
    const gone = once(child, "exit");
    child.kill(signal);
    await gone;
  }
}

const databaseName = "paybell";
const attachedWithinMs = 30_000;
/** Files of the running server, which are created again. */
const notCopied = new Set(["postmaster.pid", "postmaster.opts", "pg_wal", "pg_replslot", "pg_stat_tmp", "pg_notify"]);

/** The database of a stage: a primary and, where asked for, a standby that has every commit before it is answered. */
export class PostgresCluster {
  readonly #folder: string;
  readonly #programs: PostgresPrograms;
  primary: PostgresServer;
  #standby: PostgresServer | undefined;
  #made = 1;

  private constructor(folder: string, programs: PostgresPrograms) {
    this.#folder = folder;
    this.#programs = programs;
    this.primary = new PostgresServer(join(folder, "p1"), programs, loadSettings);
  }

  static async start(folder: string, programs: PostgresPrograms, hasStandby: boolean): Promise<PostgresCluster> {
    const cluster = new PostgresCluster(folder, programs);
    try {
      await cluster.primary.initialise();
      await cluster.primary.start();
      await cluster.primary.query(`CREATE ROLE ${databaseName} SUPERUSER LOGIN`);
      await cluster.primary.query(`CREATE DATABASE ${databaseName}`);
      if (hasStandby) await cluster.addStandby();
      return cluster;
    } catch (error) {
      // After Ctrl-C its folder may go while it starts.
      await cluster.stop();
      throw error;
    }
  }

  /** The URL for a service that connects through a link's port. */
  static urlAt(port: number): string {
    return `postgres://${databaseName}@127.0.0.1:${port}/${databaseName}?sslmode=disable`;
  }

  /** Clones the primary while it works, and waits until it has every commit. */
  async addStandby(): Promise<void> {
    this.#made += 1;
    const standby = new PostgresServer(join(this.#folder, `p${this.#made}`), this.#programs, loadSettings);
    await standby.prepare();
    await this.#clone(standby);
    await standby.start({
      primary_conninfo: `host=127.0.0.1 port=${this.primary.port} user=${databaseName} application_name=standby`,
      hot_standby: "on",
    });
    this.#standby = standby;
    await this.#attached();
    await this.primary.query("ALTER SYSTEM SET synchronous_standby_names = 'standby'");
    await this.primary.query("SELECT pg_reload_conf()");
  }

  /** The primary dies, the standby takes its place. Resolves when that one takes writes, alone for now. */
  async failOver(): Promise<void> {
    const [old, next] = [this.primary, this.#standby];
    if (next === undefined) throw new Error("There is no standby to fail over to.");
    await old.kill();
    await next.query("SELECT pg_promote(true, 60)");
    await next.query("ALTER SYSTEM RESET synchronous_standby_names");
    await next.query("SELECT pg_reload_conf()");
    this.primary = next;
    this.#standby = undefined;
    await rm(old.dataDirectory, { recursive: true, force: true });
  }

  async stop(): Promise<void> {
    await this.#standby?.stop();
    await this.primary.stop();
  }

  async #clone(standby: PostgresServer): Promise<void> {
    await this.primary.session(async (client) => {
      await client.query("SELECT pg_backup_start('faults', true)");
      await copyTree(this.primary.dataDirectory, standby.dataDirectory, standby.account);
      const { rows } = await client.query("SELECT labelfile FROM pg_backup_stop(false)");
      await writeFor(standby.account, join(standby.dataDirectory, "backup_label"), String(rows[0]?.labelfile));
      await writeFor(standby.account, join(standby.dataDirectory, "standby.signal"), "");
    });
  }

  async #attached(): Promise<void> {
    const deadlineMs = performance.now() + attachedWithinMs;
    for (;;) {
      const rows = await this.primary.query("SELECT FROM pg_stat_replication WHERE state = 'streaming'");
      if (rows.length > 0) return;
      if (performance.now() > deadlineMs) throw new Error("The standby does not follow its primary.");
      await pause(lookEveryMs);
    }
  }
}

/** Files that go while they are copied belong to no checkpoint: the log brings them again, or their end. */
async function copyTree(from: string, to: string, account: Account | undefined): Promise<void> {
  await makeFolder(to, account);
  const entries = await readdir(from, { withFileTypes: true });
  const copied = entries.filter(({ name }) => !notCopied.has(name)).map(({ name }) => join(from, name));
  // By a process of its own, because this one has the load to answer. It tells of files that are gone by its exit code.
  await run("cp", ["-a", ...copied, to]).catch(ignoreGone);
  for (const entry of entries)
    if (notCopied.has(entry.name) && entry.isDirectory()) await makeFolder(join(to, entry.name), account);
}

async function makeFolder(path: string, account: Account | undefined): Promise<void> {
  await mkdir(path, { mode: 0o700 });
  await own(path, account);
}

async function writeFor(account: Account | undefined, path: string, text: string): Promise<void> {
  await writeFile(path, text, { mode: 0o600 });
  await own(path, account);
}

async function own(path: string, account: Account | undefined): Promise<void> {
  if (account !== undefined) await chown(path, account.uid, account.gid);
}

function ignoreGone(error: Error & { readonly stderr?: string }): void {
  const lines = (error.stderr ?? error.message).trim().split("\n");
  if (!lines.every((line) => /No such file or directory$/.test(line))) throw error;
}

/** As root, PostgreSQL runs as another user, who passes through here. */
export async function openUp(folder: string): Promise<string> {
  await chmod(folder, 0o711);
  return folder;
}

/** A file system of its own, small enough to be filled: a tmpfs, which needs the right to mount. */
export class SmallDisk {
  readonly path: string;

  private constructor(path: string) {
    this.path = path;
  }

  /** Undefined where this machine does not permit to mount one. */
  static async mount(path: string, megabytes: number): Promise<SmallDisk | undefined> {
    if (process.platform !== "linux" || process.getuid?.() !== 0) return undefined;
    await mkdir(path, { recursive: true, mode: 0o755 });
    try {
      await run("mount", ["-t", "tmpfs", "-o", `size=${megabytes}m,mode=755`, "tmpfs", path]);
      return new SmallDisk(path);
    } catch {
      return undefined;
    }
  }

  /** Writes until nothing more fits. */
  async fill(): Promise<void> {
    await run("dd", ["if=/dev/zero", `of=${this.#ballast}`, "bs=4k"]).catch((error: Error) => {
      if (!error.message.includes("No space left on device")) throw error;
    });
  }

  async free(): Promise<void> {
    await rm(this.#ballast, { force: true });
  }

  async unmount(): Promise<void> {
    // Lazily: a server that is still ending must not keep it for ever.
    await run("umount", ["-l", this.path]);
  }

  get #ballast(): string {
    return join(this.path, "ballast");
  }
}

import { execFile } from "node:child_process";
import { chmod, chown, mkdir, open, readdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { Client } from "pg";
import { type Binaries, installedBinaries, usableBinaries } from "../packages/server/src/postgres/binaries.ts";
import { connectionString, ensureCluster } from "../packages/server/src/postgres/cluster.ts";
import { type DataLocation, postgresAccount } from "../packages/server/src/postgres/location.ts";
import { launchPostmaster, type Postmaster } from "../packages/server/src/postgres/postmaster.ts";
import type { Account } from "../packages/server/src/postgres/process.ts";
import { defaultSettings } from "../packages/server/src/postgres/settings.ts";

const run = promisify(execFile);

/** The PostgreSQL program, and the account that runs it. */
export interface PostgresProgram {
  readonly binaries: Binaries;
  readonly account: Account | undefined;
}

/** @param folder where the binaries are copied when PostgreSQL's user cannot enter theirs */
export async function postgresProgram(folder: string): Promise<PostgresProgram> {
  const account = await postgresAccount(join(folder, "nothing-there"));
  return { account, binaries: await usableBinaries(await installedBinaries(), account, folder) };
}

const settings = {
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

const passwords = { superuser: "superuser", owner: "owner", service: "service" };

/** One PostgreSQL on a data directory of its own, which may die and be started again. */
export class PostgresServer {
  readonly #program: PostgresProgram;
  readonly #folder: string;
  #postmaster: Postmaster | undefined;
  #socketDirectory = "";

  constructor(folder: string, program: PostgresProgram) {
    this.#folder = folder;
    this.#program = program;
  }

  get dataDirectory(): string {
    return join(this.#folder, "postgres");
  }

  get account(): Account | undefined {
    return this.#program.account;
  }

  /** The path of its unix socket, to which links lead. */
  get socketPath(): string {
    return join(this.#socketDirectory, ".s.PGSQL.5432");
  }

  get address(): { readonly path: string } {
    return { path: this.socketPath };
  }

  get socketDirectory(): string {
    return this.#socketDirectory;
  }

  get isRunning(): boolean {
    return this.#postmaster !== undefined;
  }

  /** Its folder, which PostgreSQL's user can enter. */
  async prepare(): Promise<void> {
    await mkdir(this.#folder, { recursive: true, mode: 0o755 });
    if (this.account !== undefined) await chown(this.#folder, this.account.uid, this.account.gid);
  }

  async initialise(): Promise<void> {
    await this.prepare();
    await ensureCluster(this.#place, this.#program.binaries, passwords.superuser, true);
    // Nobody else reaches these servers, and they are thrown away.
    const rules = "local all all trust\nlocal replication all trust\n";
    await writeFile(join(this.dataDirectory, "pg_hba.conf"), rules);
  }

  /** Resolves when it answers. @param more settings of this server alone */
  async start(more: Readonly<Record<string, string>> = {}): Promise<void> {
    const postmaster = await launchPostmaster({
      location: this.#place,
      binaries: this.#program.binaries,
      settings: { ...settings, ...more },
      logPath: join(this.#folder, "postgres.log"),
      log: () => undefined,
    });
    this.#postmaster = postmaster;
    this.#socketDirectory = postmaster.socketDirectory;
    void postmaster.gone.then(() => {
      if (this.#postmaster === postmaster) this.#postmaster = undefined;
    });
  }

  /** As in a power cut: it writes nothing more. Resolves when it is gone. */
  async kill(): Promise<void> {
    const postmaster = this.#postmaster;
    if (postmaster === undefined) return;
    process.kill(postmaster.pid, "SIGKILL");
    await postmaster.gone;
  }

  async stop(): Promise<void> {
    const postmaster = this.#postmaster;
    if (postmaster === undefined) return;
    // Immediately: nobody needs what it holds any more.
    await postmaster.signal("SIGQUIT");
    await postmaster.gone;
  }

  url(database?: string): string {
    return connectionString(this.#socketDirectory, "superuser", passwords, database);
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

  get #place(): DataLocation {
    const { dataDirectory, account } = this;
    return { home: this.#folder, base: this.#folder, dataDirectory, account };
  }
}

const databaseName = "paybell";
const attachedWithinMs = 30_000;
const lookEveryMs = 50;
/** Files of the running server, which are created again. */
const notCopied = new Set(["postmaster.pid", "postmaster.opts", "pg_wal", "pg_replslot", "pg_stat_tmp", "pg_notify"]);

/** The database of a stage: a primary and, where asked for, a standby that has every commit before it is answered. */
export class PostgresCluster {
  readonly #folder: string;
  readonly #program: PostgresProgram;
  #primary: PostgresServer;
  #standby: PostgresServer | undefined;
  #made = 1;

  private constructor(folder: string, program: PostgresProgram) {
    this.#folder = folder;
    this.#program = program;
    this.#primary = new PostgresServer(join(folder, "p1"), program);
  }

  static async start(folder: string, program: PostgresProgram, hasStandby: boolean): Promise<PostgresCluster> {
    const cluster = new PostgresCluster(folder, program);
    try {
      await cluster.#primary.initialise();
      await cluster.#primary.start();
      await cluster.#primary.query(`CREATE ROLE ${databaseName} SUPERUSER LOGIN`);
      await cluster.#primary.query(`CREATE DATABASE ${databaseName}`);
      if (hasStandby) await cluster.addStandby();
      return cluster;
    } catch (error) {
      // After Ctrl-C its folder may go while it starts.
      await cluster.stop();
      throw error;
    }
  }

  get primary(): PostgresServer {
    return this.#primary;
  }

  /** The URL for a service that connects through a link's port. */
  static urlAt(port: number): string {
    return `postgres://${databaseName}@127.0.0.1:${port}/${databaseName}?sslmode=disable`;
  }

  /** Clones the primary while it works, and waits until it has every commit. */
  async addStandby(): Promise<void> {
    this.#made += 1;
    const standby = new PostgresServer(join(this.#folder, `p${this.#made}`), this.#program);
    await standby.prepare();
    await this.#clone(standby);
    await standby.start({
      primary_conninfo: `host=${this.#primary.socketDirectory} port=5432 user=${databaseName} application_name=standby`,
      hot_standby: "on",
    });
    this.#standby = standby;
    await this.#attached();
    await this.#primary.query("ALTER SYSTEM SET synchronous_standby_names = 'standby'");
    await this.#primary.query("SELECT pg_reload_conf()");
  }

  /** The primary dies, the standby takes its place. Resolves when that one takes writes, alone for now. */
  async failOver(): Promise<void> {
    const [old, next] = [this.#primary, this.#standby];
    if (next === undefined) throw new Error("There is no standby to fail over to.");
    await old.kill();
    await next.query("SELECT pg_promote(true, 60)");
    await next.query("ALTER SYSTEM RESET synchronous_standby_names");
    await next.query("SELECT pg_reload_conf()");
    this.#primary = next;
    this.#standby = undefined;
    await rm(old.dataDirectory, { recursive: true, force: true });
  }

  async stop(): Promise<void> {
    await this.#standby?.stop();
    await this.#primary.stop();
  }

  async #clone(standby: PostgresServer): Promise<void> {
    await this.#primary.session(async (client) => {
      await client.query("SELECT pg_backup_start('faults', true)");
      await copyTree(this.#primary.dataDirectory, standby.dataDirectory, standby.account);
      const { rows } = await client.query("SELECT labelfile FROM pg_backup_stop(false)");
      await writeFor(standby.account, join(standby.dataDirectory, "backup_label"), String(rows[0]?.labelfile));
      await writeFor(standby.account, join(standby.dataDirectory, "standby.signal"), "");
    });
  }

  async #attached(): Promise<void> {
    const deadlineMs = performance.now() + attachedWithinMs;
    for (;;) {
      const rows = await this.#primary.query("SELECT FROM pg_stat_replication WHERE state = 'streaming'");
      if (rows.length > 0) return;
      if (performance.now() > deadlineMs) throw new Error("The standby does not follow its primary.");
      await new Promise((resolve) => setTimeout(resolve, lookEveryMs));
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

const pieceBytes = 1024 * 1024;

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
    const file = await open(this.#ballast, "w");
    try {
      for (let bytes = pieceBytes; bytes >= 4_096; bytes /= 4) while (await fits(file, Buffer.alloc(bytes)));
    } finally {
      await file.close();
    }
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

async function fits(file: Awaited<ReturnType<typeof open>>, piece: Buffer): Promise<boolean> {
  try {
    await file.write(piece);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOSPC") return false;
    throw error;
  }
}

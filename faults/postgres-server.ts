import { chown, mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Client } from "pg";
import { postgresAccount } from "../packages/server/src/postgres/account.ts";
import { type Binaries, installedBinaries, usableBinaries } from "../packages/server/src/postgres/binaries.ts";
import { ensureCluster } from "../packages/server/src/postgres/cluster.ts";
import type { DataLocation } from "../packages/server/src/postgres/data-location.ts";
import { connectionString } from "../packages/server/src/postgres/database.ts";
import { launchPostmaster } from "../packages/server/src/postgres/launch.ts";
import type { Postmaster } from "../packages/server/src/postgres/postmaster.ts";
import { defaultSettings } from "../packages/server/src/postgres/settings.ts";
import type { Account } from "../packages/server/src/postgres/tool.ts";

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
      passwords,
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
    const socket = { socketDirectory: this.#socketDirectory, port: 5432 };
    return connectionString(socket, "superuser", passwords, database);
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

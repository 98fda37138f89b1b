import { Client, type ClientConfig } from "pg";

/** Runs `use` on a connection of its own, outside of any pool. */
export async function withClient<Result>(
  config: ClientConfig,
  use: (client: Client) => Promise<Result>,
): Promise<Result> {
  const client = new Client({ connectionTimeoutMillis: 5_000, ...config });
  // The query in flight, or the next one, fails if the connection is lost. Without a listener the process would end.
  client.on("error", () => undefined);
  try {
    await client.connect();
    return await use(client);
  } finally {
    await client.end().catch(() => undefined);
  }
}

export interface PostgresListenerOptions {
  connect(): Promise<Client>;
  readonly onTrouble: (error: unknown) => void;
}

/** A dedicated connection for LISTEN and the lease; it reconnects by itself. */
export class PostgresListener {
  readonly #options: PostgresListenerOptions;
  readonly #channels = new Map<string, (payload: string) => void>();
  #client: Client | undefined;
  #connecting: Promise<Client> | undefined;
  #retry: NodeJS.Timeout | undefined;
  #stopped = false;

  constructor(options: PostgresListenerOptions) {
    this.#options = options;
  }

  /**
   * Before the first connection.
   *
   * @param onNotify called for each notification and, with an empty one, after each connect: notifications in between
   * are lost
   */
  on(channel: string, onNotify: (payload: string) => void): void {
    this.#channels.set(channel, onNotify);
  }

  /** The current connection; a new one after it was lost. */
  connection(): Promise<Client> {
    if (this.#client) return Promise.resolve(this.#client);
    this.#connecting ??= this.#connect().finally(() => {
      this.#connecting = undefined;
    });
    return this.#connecting;
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    clearTimeout(this.#retry);
    const client = this.#client ?? (await this.#connecting?.catch(() => undefined));
    this.#client = undefined;
    await client?.end();
  }

  async #connect(): Promise<Client> {
    if (this.#stopped) throw new Error("The connection was given up.");
    const client = await this.#options.connect();
    client.on("notification", ({ channel, payload }) => this.#channels.get(channel)?.(payload ?? ""));
    client.on("end", () => this.#lost(client));
    try {
      for (const channel of this.#channels.keys()) await client.query(`LISTEN ${channel}`);
    } catch (error) {
      client.end().catch(() => undefined);
      throw error;
    }
    this.#client = client;
    for (const onNotify of this.#channels.values()) onNotify("");
    return client;
  }

  #lost(client: Client): void {
    if (this.#client === client) this.#client = undefined;
    if (this.#stopped) return;
    clearTimeout(this.#retry);
    this.#retry = setTimeout(() => {
      this.connection().catch((error: unknown) => {
        this.#options.onTrouble(error);
        this.#lost(client);
      });
    }, 500);
  }
}

import type { Client, QueryResult } from "pg";
import type { FileLocks, HeldFile } from "../intake/folder-watch.ts";

interface Session {
  readonly client: Client;
  readonly lost: AbortSignal;
}

/** A silent server is noticed with the time limit of the answer, long before it notices us and frees the locks. */
const askEveryMs = 5_000;

/**
 * Locks on the files that an instance reads, and on the feed that one writes: advisory locks of one session, which
 * PostgreSQL releases when it ends.
 */
export class PostgresIntakeLocks implements FileLocks {
  readonly #connect: () => Promise<Client>;
  #session: Session | undefined;

  /** @param connect opens a connection of its own: a pool's would lend the locks to others */
  constructor(connect: () => Promise<Client>) {
    this.#connect = connect;
  }

  async hold(name: string): Promise<HeldFile | undefined> {
    this.#session ??= await this.#open();
    const { client, lost } = this.#session;
    const text = "SELECT pg_try_advisory_lock(hashtext('paybell intake'), hashtext($1)) AS mine";
    const { rows } = await ask<{ mine: boolean }>(client, text, [name]);
    if (rows[0]?.mine !== true) return undefined;
    const release = async () => {
      if (lost.aborted) return;
      await ask(client, "SELECT pg_advisory_unlock(hashtext('paybell intake'), hashtext($1))", [name]);
    };
    return { lost, release };
  }

  async close(): Promise<void> {
    const session = this.#session;
    this.#session = undefined;
    await session?.client.end();
  }

  async #open(): Promise<Session> {
    const client = await this.#connect();
    const lost = new AbortController();
    const asking = setInterval(() => void ask(client, "SELECT 1").catch(() => undefined), askEveryMs);
    client.once("end", () => {
      clearInterval(asking);
      lost.abort(new Error("the connection that held the lock ended"));
      if (this.#session?.client === client) this.#session = undefined;
    });
    return { client, lost: lost.signal };
  }
}

async function ask<Row extends object>(client: Client, text: string, values?: string[]): Promise<QueryResult<Row>> {
  try {
    return await client.query<Row>(text, values);
  } catch (error) {
    // A connection without an answer may never answer. Its locks end with it, and the next file gets another one.
    client.end().catch(() => undefined);
    throw error;
  }
}

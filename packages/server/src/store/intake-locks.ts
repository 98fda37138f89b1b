import type { Client, QueryResult } from "pg";
import type { FileLocks, HeldFile } from "../intake/folder-watch.ts";

interface Session {
  readonly client: Client;
  readonly lost: AbortController;
  holders: number;
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
    const session = this.#session;
    const { client, lost } = session;
    const text = "SELECT pg_try_advisory_lock(hashtext('paybell intake'), hashtext($1)) AS mine";
    const { rows } = await ask<{ mine: boolean }>(client, text, name);
    if (rows[0]?.mine !== true) return undefined;
    session.holders += 1;
    const release = async () => {
      session.holders -= 1;
      if (lost.signal.aborted) return endUnlessHeld(session);
      await ask(client, "SELECT pg_advisory_unlock(hashtext('paybell intake'), hashtext($1))", name);
    };
    return { lost: lost.signal, release };
  }

  async close(): Promise<void> {
    const session = this.#session;
    this.#session = undefined;
    await session?.client.end();
  }

  async #open(): Promise<Session> {
    const client = await this.#connect();
    const session: Session = { client, lost: new AbortController(), holders: 0 };
    const giveUp = (reason: unknown) => {
      clearInterval(asking);
      session.lost.abort(reason);
      if (this.#session === session) this.#session = undefined;
      endUnlessHeld(session);
    };
    const asking = setInterval(() => void client.query("SELECT 1").catch(giveUp), askEveryMs);
    client.once("end", () => giveUp(new Error("the connection that held the lock ended")));
    return session;
  }
}

/** The end of the connection frees its locks: not before their holders have ended their work. */
function endUnlessHeld({ client, holders }: Session): void {
  if (holders === 0) client.end().catch(() => undefined);
}

async function ask<Row extends object>(client: Client, text: string, name: string): Promise<QueryResult<Row>> {
  try {
    return await client.query<Row>(text, [name]);
  } catch (error) {
    // A connection without an answer may never answer. Its locks end with it, and the next file gets another one.
    client.end().catch(() => undefined);
    throw error;
  }
}

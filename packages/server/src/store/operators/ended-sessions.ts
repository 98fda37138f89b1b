import type { Pool } from "pg";
import type { EndedSessionStore } from "../../operators/ended-sessions.ts";

/** Ended sessions in PostgreSQL. Each that is added deletes those that are over. */
export class PostgresEndedSessions implements EndedSessionStore {
  readonly #pool: Pool;

  constructor(pool: Pool) {
    this.#pool = pool;
  }

  async add(id: Buffer, endsAtMs: number): Promise<void> {
    // An instance whose clock is behind takes a cookie a little longer.
    await this.#pool.query("DELETE FROM ended_sessions WHERE ends_at < now() - interval '1 hour'");
    await this.#pool.query("INSERT INTO ended_sessions (id, ends_at) VALUES ($1, $2) ON CONFLICT DO NOTHING", [
      id,
      new Date(endsAtMs),
    ]);
  }

  async has(id: Buffer): Promise<boolean> {
    const { rowCount } = await this.#pool.query("SELECT FROM ended_sessions WHERE id = $1", [id]);
    return rowCount === 1;
  }
}

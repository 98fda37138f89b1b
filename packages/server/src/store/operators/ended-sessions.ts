import type { Pool } from "pg";
import type { EndedSessionStore } from "../../operators/ended-sessions.ts";

/** Ended sessions in PostgreSQL. Each that is added deletes those that are over. */
export function postgresEndedSessions(pool: Pool): EndedSessionStore {
  return {
    async add(id, endsAtMs) {
      // An instance whose clock is behind takes a cookie a little longer.
      await pool.query("DELETE FROM ended_sessions WHERE ends_at < now() - interval '1 hour'");
      await pool.query("INSERT INTO ended_sessions (id, ends_at) VALUES ($1, $2) ON CONFLICT DO NOTHING", [
        id,
        new Date(endsAtMs),
      ]);
    },

    async has(id) {
      const { rowCount } = await pool.query("SELECT FROM ended_sessions WHERE id = $1", [id]);
      return rowCount === 1;
    },
  };
}

import type { Pool } from "pg";
import type { AcquirerHealth } from "../acquirer/acquirer.ts";
import type { SessionHolder, SessionStore } from "../acquirer/session/one-session.ts";
import type { Database } from "./database/database.ts";

// If it is held, nothing is changed, and the holder is returned.
const claim = {
  name: "claim_session",
  text: `
    WITH taken AS (
      INSERT INTO acquirer_sessions AS s (acquirer, lease_id) VALUES ($1, $2)
      ON CONFLICT (acquirer) DO UPDATE SET lease_id = excluded.lease_id, is_up = false, detail = ''
      WHERE s.lease_id IS NULL
      RETURNING lease_id, is_up, detail)
    SELECT lease_id, is_up, detail FROM taken
    UNION ALL
    SELECT lease_id, is_up, detail FROM acquirer_sessions WHERE acquirer = $1 AND NOT EXISTS (SELECT FROM taken)`,
};

const describeHolder = {
  name: "describe_session",
  text: "UPDATE acquirer_sessions SET is_up = $3, detail = $4 WHERE acquirer = $1 AND lease_id = $2",
};

const release = {
  name: "release_session",
  text: "UPDATE acquirer_sessions SET lease_id = NULL WHERE acquirer = $1 AND lease_id = $2",
};

interface Row {
  readonly lease_id: string | null;
  readonly is_up: boolean;
  readonly detail: string;
}

const nobody: SessionHolder = { leaseId: null, isUp: false, detail: "" };

/** The holder of the session with an acquirer's host, in PostgreSQL, and the messages between instances. */
export class PostgresAcquirerSessions implements SessionStore {
  readonly #engine: Pool;

  constructor({ engine }: Pick<Database, "engine">) {
    this.#engine = engine;
  }

  async claim(acquirer: string, leaseId: string): Promise<SessionHolder> {
    const { rows } = await this.#engine.query<Row>({ ...claim, values: [acquirer, leaseId] });
    return rows.map(({ lease_id, is_up: isUp, detail }) => ({ leaseId: lease_id, isUp, detail }))[0] ?? nobody;
  }

  async describe(acquirer: string, leaseId: string, { ok, detail }: AcquirerHealth): Promise<void> {
    await this.#engine.query({ ...describeHolder, values: [acquirer, leaseId, ok, detail] });
  }

  async release(acquirer: string, leaseId: string): Promise<void> {
    await this.#engine.query({ ...release, values: [acquirer, leaseId] });
  }

  /** Tells all instances: who listens to `paybell_session`. */
  async tell(text: string): Promise<void> {
    await this.#engine.query({
      name: "tell_session",
      text: "SELECT pg_notify('paybell_session', $1)",
      values: [text],
    });
  }
}

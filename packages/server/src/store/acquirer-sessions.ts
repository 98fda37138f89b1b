import type { Pool } from "pg";
import type { AcquirerHealth } from "../acquirer/acquirer.ts";
import type { SessionHolder, SessionStore } from "../acquirer/session/one-session.ts";
import type { Database } from "./database/database.ts";
import { prepared } from "./database/statement.ts";

// If it is held, nothing is changed, and the holder is returned.
const claim = prepared<Row>(`
  WITH taken AS (
    INSERT INTO acquirer_sessions AS s (acquirer, lease_id) VALUES ($1, $2)
    ON CONFLICT (acquirer) DO UPDATE SET lease_id = excluded.lease_id, is_up = false,
      is_signed_off = false, detail = ''
    WHERE s.lease_id IS NULL
    RETURNING lease_id, is_up, is_signed_off, detail)
  SELECT lease_id, is_up, is_signed_off, detail FROM taken
  UNION ALL
  SELECT lease_id, is_up, is_signed_off, detail FROM acquirer_sessions
  WHERE acquirer = $1 AND NOT EXISTS (SELECT FROM taken)`);

const find = prepared<Row>("SELECT lease_id, is_up, is_signed_off, detail FROM acquirer_sessions WHERE acquirer = $1");

const describeHolder = prepared(`
  UPDATE acquirer_sessions SET is_up = $3, detail = $4, is_signed_off = $5
  WHERE acquirer = $1 AND lease_id = $2`);

const release = prepared("UPDATE acquirer_sessions SET lease_id = NULL WHERE acquirer = $1 AND lease_id = $2");

// PostgreSQL commits transactions with a NOTIFY one after the other. A text outlives no crash anyway, so that none of
// them need wait for the disk.
const publish = prepared(`
  SELECT count(pg_notify('paybell_session', text))
  FROM (SELECT set_config('synchronous_commit', 'off', true)) AS not_durable, unnest($1::text[]) AS text`);
/** Bound on payloads in one statement, each of up to 8 kB. */
const payloadsMax = 100;

interface Unpublished {
  readonly text: string;
  readonly isWanted: () => boolean;
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

interface Row {
  readonly lease_id: string | null;
  readonly is_up: boolean;
  readonly is_signed_off: boolean;
  readonly detail: string;
}

const nobody: SessionHolder = { leaseId: null, isUp: false, isSignedOff: false, detail: "" };

/** The holder of the session with an acquirer's host, in PostgreSQL, and the messages between instances. */
export class PostgresAcquirerSessions implements SessionStore {
  readonly #engine: Pool;
  #unpublished: Unpublished[] = [];
  #isPublishing = false;

  constructor({ engine }: Pick<Database, "engine">) {
    this.#engine = engine;
  }

  async claim(acquirer: string, leaseId: string): Promise<SessionHolder> {
    return holderOf(await claim.first(this.#engine, [acquirer, leaseId]));
  }

  async holder(acquirer: string): Promise<SessionHolder> {
    return holderOf(await find.first(this.#engine, [acquirer]));
  }

  async describe(acquirer: string, leaseId: string, health: AcquirerHealth): Promise<void> {
    const { ok, isSignedOff = false, detail } = health;
    await describeHolder.run(this.#engine, [acquirer, leaseId, ok, detail, isSignedOff]);
  }

  async release(acquirer: string, leaseId: string): Promise<void> {
    await release.run(this.#engine, [acquirer, leaseId]);
  }

  /**
   * Sends to all instances, which listen to `paybell_session`. Rejects when it is not known whether it was sent.
   *
   * @param isWanted asked just before: a text may have waited for a database that hung
   */
  publish(text: string, isWanted = () => true): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    this.#unpublished.push({ text, isWanted, resolve, reject });
    if (!this.#isPublishing) void this.#publishAll();
    return promise;
  }

  /** Payloads that come meanwhile share the next statement. None is sent twice: a Sale would be sent twice. */
  async #publishAll(): Promise<void> {
    this.#isPublishing = true;
    while (this.#unpublished.length > 0) {
      const next = this.#unpublished.splice(0, payloadsMax);
      const batch = next.filter(({ isWanted }) => isWanted());
      for (const one of next) if (!batch.includes(one)) one.reject(new Error("It was not sent in time"));
      if (batch.length === 0) continue;
      const sent = publish.run(this.#engine, [batch.map(({ text }) => text)]);
      await sent.then(
        () => batch.forEach(({ resolve }) => void resolve()),
        (error: unknown) => batch.forEach(({ reject }) => void reject(error)),
      );
    }
    this.#isPublishing = false;
  }
}

function holderOf(row: Row | undefined): SessionHolder {
  if (row === undefined) return nobody;
  const { lease_id: leaseId, is_up: isUp, is_signed_off: isMarked, detail } = row;
  // An older version, as the holder, does not take the mark away.
  return { leaseId, isUp, isSignedOff: isMarked && !isUp, detail };
}

import type { Pool } from "pg";
import { expect } from "vitest";
import type { SpokenProcess } from "./instance.ts";

/** Resolves once so many sessions of the database wait for a lock. */
export async function lockWaits(pool: Pick<Pool, "query">, count = 1): Promise<void> {
  const waiting = "SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
  await expect.poll(async () => (await pool.query(waiting)).rowCount).toBe(count);
}

/**
 * Runs `change` into a deadlock with another session, and lets it be the one that PostgreSQL ends: the session whose
 * wait closes the circle first notices it. So the other waits first, for a row that `change` has updated, while
 * `change` waits at a gate; only then `change` comes to the row that the other has locked.
 *
 * @param table whose row `change` updates first
 * @param locks what the other session does, first without waiting, then to wait for the row of `table`
 */
export async function loseDeadlock<Result>(
  pool: Pool,
  change: () => Promise<Result>,
  { table, locks }: { readonly table: string; readonly locks: readonly [first: string, then: string] },
): Promise<Result> {
  const [gate, other] = [await pool.connect(), await pool.connect()];
  try {
    await gate.query(
      `SELECT pg_advisory_lock(1);
       CREATE FUNCTION wait_at_gate() RETURNS trigger LANGUAGE plpgsql AS
         'BEGIN PERFORM pg_advisory_xact_lock_shared(1); RETURN NEW; END';
       CREATE TRIGGER gate BEFORE UPDATE ON ${table} FOR EACH ROW EXECUTE FUNCTION wait_at_gate()`,
    );
    // It looks for the circle later than any test lasts.
    await other.query("SET deadlock_timeout = '1h'; BEGIN");
    await other.query(locks[0]);
    const changed = change();
    // It is awaited last; a failure before that must not be a second one.
    changed.catch(() => undefined);
    await lockWaits(pool);
    const locked = other.query(locks[1]);
    await lockWaits(pool, 2);
    await gate.query("SELECT pg_advisory_unlock(1)");
    await locked;
    await other.query("COMMIT");
    return await changed;
  } finally {
    gate.release(true);
    other.release(true);
  }
}

/**
 * The session that inserts this row waits.
 *
 * @param row a condition on NEW
 * @returns kills the instance once it does: what it did before is durable, and this row is not
 */
export async function gateAt(
  pool: Pool,
  table: string,
  row: string,
): Promise<(instance: SpokenProcess) => Promise<void>> {
  const gate = await pool.connect();
  await gate.query(
    `SELECT pg_advisory_lock(1);
     CREATE OR REPLACE FUNCTION wait_at_gate() RETURNS trigger LANGUAGE plpgsql AS
       'BEGIN PERFORM pg_advisory_xact_lock_shared(1); RETURN NEW; END';
     CREATE TRIGGER gate BEFORE INSERT ON ${table} FOR EACH ROW WHEN (${row}) EXECUTE FUNCTION wait_at_gate()`,
  );
  return async (instance) => {
    await lockWaits(pool);
    instance.signal("SIGKILL");
    await instance.exited;
    // The view has those of all databases, and other tests wait for locks of their own.
    const waiting = `
      SELECT l.pid FROM pg_locks l JOIN pg_database d ON d.oid = l.database
      WHERE d.datname = current_database() AND l.locktype = 'advisory' AND NOT l.granted`;
    await gate.query(`SELECT pg_terminate_backend(pid, 60000) FROM (${waiting}) AS w`);
    await gate.query(`SELECT pg_advisory_unlock(1); DROP TRIGGER gate ON ${table}`);
    gate.release(true);
  };
}

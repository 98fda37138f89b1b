import type { Pool, QueryResultRow } from "pg";
import { ServiceError } from "../../errors.ts";

// JIT would take the cost of the disabled plans for real, and compile a statement that runs for a millisecond.
const settings = ["enable_seqscan", "enable_bitmapscan", "enable_sort", "enable_hashjoin", "enable_mergejoin", "jit"];

/** For a transaction whose queries run along indexes. */
export const alongIndexes = settings.map((setting) => `SET LOCAL ${setting} = off`).join("; ");

/**
 * Runs a query that touches a bounded number of rows by their keys, whatever the statistics say: a page must not cost
 * more as history grows. Measured: with statistics from empty history, a page of 100 read and sorted a partner's 60,000
 * rows.
 */
export async function queryAlongIndexes<Row extends QueryResultRow>(
  pool: Pool,
  text: string,
  values: readonly unknown[],
): Promise<readonly Row[]> {
  await takeTurn(pool);
  try {
    const client = await pool.connect();
    try {
      await client.query(`BEGIN READ ONLY; ${alongIndexes}`);
      const { rows } = await client.query<Row>(text, [...values]);
      await client.query("COMMIT");
      client.release();
      return rows;
    } catch (error) {
      client.release(true);
      throw error;
    }
  } finally {
    endTurn(pool);
  }
}

interface Turns {
  running: number;
  readonly waiting: (() => void)[];
}

const turns = new WeakMap<Pool, Turns>();
/** As long as the wait for a connection. */
const turnWaitMs = 5_000;

/** One connection of the pool is left to the actions of people, which must not wait for searches. */
async function takeTurn(pool: Pool): Promise<void> {
  const own = turnsOf(pool);
  if (own.running < Math.max(1, pool.options.max - 1)) {
    own.running += 1;
    return;
  }
  const { waiting } = own;
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const timer = setTimeout(() => {
    waiting.splice(waiting.indexOf(begin), 1);
    reject(new ServiceError("unavailable", "Too many searches run now.", { retryAfterS: 5 }));
  }, turnWaitMs);
  const begin = () => {
    clearTimeout(timer);
    resolve();
  };
  waiting.push(begin);
  await promise;
}

/** The turn goes to the one that waits longest. */
function endTurn(pool: Pool): void {
  const own = turnsOf(pool);
  const next = own.waiting.shift();
  if (next === undefined) own.running -= 1;
  else next();
}

function turnsOf(pool: Pool): Turns {
  const known = turns.get(pool) ?? { running: 0, waiting: [] };
  turns.set(pool, known);
  return known;
}

/** A time in SQL as whole milliseconds since 1970. */
export function epochMs(time: string): string {
  return `floor(extract(epoch FROM ${time}) * 1000)::float8`;
}

/** The number of these rows, exact up to a bound, so that no query grows with them. */
export function countUpTo(max: number, rows: string): string {
  return `(SELECT count(*) FROM (SELECT FROM ${rows} LIMIT ${max}) AS few)::integer`;
}

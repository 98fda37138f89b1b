import type { Pool } from "pg";
import type { PartnerId } from "../ids.ts";

/**
 * One step along the index for each queue that has a free row: a queue is what one partner has pending for one origin.
 * The first row that is there also tells where what is due may be looked for.
 */
export const walkQueues = `queue AS (
      (SELECT p.partner_id, p.origin, p.due_at AS floor FROM pending p WHERE p.instance_id IS NULL
       ORDER BY p.partner_id, p.origin, p.due_at LIMIT 1)
      UNION ALL
      SELECT next.partner_id, next.origin, next.floor FROM queue q CROSS JOIN LATERAL (
        SELECT p.partner_id, p.origin, p.due_at AS floor FROM pending p
        WHERE p.instance_id IS NULL AND (p.partner_id, p.origin) > (q.partner_id, q.origin)
        ORDER BY p.partner_id, p.origin, p.due_at LIMIT 1) AS next)`;

/**
 * Below it nothing is free, as far as a statement can see that began now: in seconds. Whatever comes to be due is due
 * at the beginning of its own transaction or later, so a second is left to those that are still under way.
 */
export function floorOf(dueAt: string): string {
  return `extract(epoch FROM least(${dueAt}, now() - interval '1 second'))::double precision`;
}

const findQueues = {
  name: "find_queues",
  text: `
    WITH RECURSIVE ${walkQueues},
    found AS MATERIALIZED (SELECT q.partner_id, q.origin, ${floorOf("q.floor")} AS floor FROM queue q)
    SELECT coalesce(json_agg(found), '[]') AS queues,
      (extract(epoch FROM clock_timestamp() - statement_timestamp()) * 1000)::double precision AS took_ms
    FROM found`,
};

/** What one partner has pending for one origin. */
export interface Queue {
  readonly partner_id: PartnerId;
  readonly origin: string;
  /** No free row of it is due before, in seconds of the database's clock. */
  readonly floor: number;
}

export interface QueuesOptions {
  readonly nowMs?: () => number;
  /** A claim that takes longer may have passed by many rows that are gone: it is looked into. */
  readonly suspectMs?: number;
  /** A walk that PostgreSQL is done with faster passed by next to nothing. */
  readonly cheapWalkMs?: number;
}

/** However many rows a walk passes by, it takes a tenth of the time at most. */
const restPerWalk = 10;
const lookEveryMs = 1_000;

/**
 * Which queues there are, and from where on each has something, while it is dear to find out: beside a transaction that
 * stays open, rows of `pending` that are gone cannot be cleared away, and whoever walks the index passes by all of
 * them. In ordinary times each claim walks, and nothing is kept here.
 *
 * What is kept is never relied on for long. A row below its queue's floor, or of a queue that is not known, is found by
 * the next walk: ten times as long after the last one as that took.
 */
export class Queues {
  readonly #engine: Pool;
  readonly #options: Required<QueuesOptions>;
  /** Undefined in ordinary times. */
  #known: Map<string, Queue> | undefined;
  #isSuspect = false;
  #walkedMs = Number.NEGATIVE_INFINITY;
  #walkTookMs = 0;

  constructor(engine: Pool, options: QueuesOptions = {}) {
    this.#engine = engine;
    this.#options = { nowMs: () => performance.now(), suspectMs: 15, cheapWalkMs: 3, ...options };
  }

  /** What a claim may go by; undefined: it is to walk itself. */
  async known(): Promise<readonly Queue[] | undefined> {
    const sinceMs = this.#options.nowMs() - this.#walkedMs;
    const walks = this.#known === undefined ? this.#isSuspect && sinceMs >= lookEveryMs : sinceMs >= this.#restMs;
    if (walks) await this.#walk();
    return this.#known && [...this.#known.values()];
  }

  /** Told of each claim: how long it took, and of which queues it brought rows, each with where they were due. */
  claimed(tookMs: number, rows: readonly Queue[]): void {
    this.#isSuspect = tookMs >= this.#options.suspectMs;
    if (this.#known === undefined) return;
    const first = new Map<string, Queue>();
    for (const { partner_id, origin, floor } of rows) {
      const key = keyOf({ partner_id, origin });
      if (floor < (first.get(key)?.floor ?? Number.POSITIVE_INFINITY)) first.set(key, { partner_id, origin, floor });
    }
    for (const [key, queue] of first) this.#known.set(key, queue);
  }

  get #restMs(): number {
    return this.#walkTookMs * restPerWalk;
  }

  async #walk(): Promise<void> {
    const { nowMs, cheapWalkMs } = this.#options;
    const startedMs = nowMs();
    try {
      const { rows } = await this.#engine.query<{ queues: readonly Queue[]; took_ms: number }>(findQueues);
      const { queues = [], took_ms = 0 } = rows[0] ?? {};
      // PostgreSQL's own time: ours counts whatever else this process had to do.
      this.#walkTookMs = took_ms;
      this.#known = took_ms < cheapWalkMs ? undefined : new Map(queues.map((queue) => [keyOf(queue), queue]));
    } catch (error) {
      // Too much for one statement's time: what is known is served all the same.
      if (this.#known === undefined) throw error;
      this.#walkTookMs = nowMs() - startedMs;
    } finally {
      this.#walkedMs = nowMs();
      this.#isSuspect = false;
    }
  }
}

function keyOf({ partner_id, origin }: Omit<Queue, "floor">): string {
  return `${partner_id} ${origin}`;
}

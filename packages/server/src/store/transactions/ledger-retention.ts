import type { Pool, PoolClient } from "pg";
import type { Clock } from "../../clock.ts";
import { lowestId, nilId, type PartnerId, type TransactionId } from "../../ids.ts";
import type { Homes } from "../database/homes.ts";
import { planned, prepared, type Statement } from "../database/statement.ts";
import { inTransaction } from "../database/transaction.ts";
import { dayMs } from "../schema/partitions.ts";
import { isUntimed } from "./conditions.ts";

export interface LedgerRetentionOptions {
  readonly homes: Homes;
  readonly clock: Pick<Clock, "nowMs">;
  /** The retention of transactions and batches in days. */
  readonly ledgerDays: number;
  /** Called after each batch of deleted rows. */
  readonly onDropped: (table: "transactions" | "reversals" | "batches", rows: number) => void;
}

const batchRows = 500;
// An arbitrary number, the same in every version of the service.
const retentionLock = 7_420_003;

interface Scanned {
  readonly id: TransactionId;
  readonly at: string | null;
}

interface Walk {
  readonly scan: Statement<Scanned>;
  readonly last: string | Date;
  /** The columns that precede the id in the position. */
  readonly from: readonly string[];
}

const partnersWithOld = planned<{ id: PartnerId }>(`
  SELECT p.id FROM partners p
  WHERE EXISTS (SELECT FROM transactions t WHERE t.partner_id = p.id AND t.id < $1)
    OR EXISTS (SELECT FROM transactions t WHERE t.partner_id = p.id AND t.created_at < $2 AND ${isUntimed})
    OR EXISTS (SELECT FROM batches b WHERE b.partner_id = p.id AND b.closed_at < $2)
  ORDER BY p.id`);

const byTime = prepared<Scanned>(`
  SELECT id, NULL AS at FROM transactions WHERE partner_id = $1 AND id > $2 AND id < $3 ORDER BY id
  LIMIT ${batchRows}`);

// The ids of a switch need not contain the time. It is passed as a string: a Date would truncate the microseconds, and
// read the rows of one commit forever.
const untimed = prepared<Scanned>(`
  SELECT t.id, t.created_at::text AS at FROM transactions t
  WHERE t.partner_id = $1 AND (t.created_at, t.id) > ($4::timestamptz, $2) AND t.created_at < $3 AND ${isUntimed}
  ORDER BY t.created_at, t.id LIMIT ${batchRows}`);

// All transactions that refer to each other: a chain is deleted as a whole or not at all. One of a chain finds the
// others. A switch may report two that refer to each other: UNION ends the recursion.
const families = prepared<{ of: TransactionId; id: TransactionId }>(`
    WITH RECURSIVE one AS (
      SELECT DISTINCT ON (chain_id) id, original_id FROM transactions
      WHERE partner_id = $1 AND id = ANY($2::uuid[]) ORDER BY chain_id, id),
    family AS (
      SELECT id AS of, id, original_id FROM one
      UNION
      SELECT f.of, n.id, n.original_id FROM family f CROSS JOIN LATERAL (
        SELECT o.id, o.original_id FROM transactions o WHERE o.partner_id = $1 AND o.id = f.original_id
        UNION ALL
        SELECT c.id, c.original_id FROM transactions c WHERE c.partner_id = $1 AND c.original_id = f.id) n)
    SELECT of, id FROM family`);

// A command locks its original first: locked rows stay, and rows changed meanwhile are checked again. A Reversal that ended
// since is a line of the statement of that day.
const lockOver = prepared<{ id: TransactionId }>(`
  SELECT t.id FROM transactions t
  WHERE t.partner_id = $1 AND t.id = ANY($2::uuid[]) AND t.created_at < $3
    AND t.state <> 'INIT' AND coalesce(t.completed_at, t.created_at) < $3
    AND coalesce(t.reversal_state, 'done') IN ('done', 'stands') AND coalesce(t.successor_state, 'done') = 'done'
    AND NOT EXISTS (SELECT FROM pending p WHERE p.partner_id = $1 AND p.id = t.notification_id)
    AND NOT EXISTS (SELECT FROM parked p WHERE p.partner_id = $1 AND p.id = t.notification_id)
    AND NOT EXISTS (SELECT FROM terminals r WHERE r.partner_id = $1 AND r.tid = t.tid AND r.batch_id = t.batch_id)
    AND NOT EXISTS (SELECT FROM reversals v WHERE v.partner_id = $1 AND v.transaction_id = t.id
      AND greatest(v.ended_at, v.stood_at) >= $3)
    AND NOT EXISTS (SELECT FROM clearing_entries e
      WHERE e.transaction_id = t.id AND e.partner_id = $1 AND e.state = 'open')
  ORDER BY t.id
  FOR UPDATE OF t SKIP LOCKED`);

const dropTransactions = prepared("DELETE FROM transactions WHERE partner_id = $1 AND id = ANY($2::uuid[])");

const dropReversals = prepared("DELETE FROM reversals WHERE partner_id = $1 AND transaction_id = ANY($2::uuid[])");

// Once no transaction of it is left.
const dropBatches = prepared<{ gone: number; scanned: number; last: string | null }>(`
    WITH scanned AS (
      SELECT b.id, b.closed_at FROM batches b WHERE b.partner_id = $1 AND b.id > $2 ORDER BY b.id LIMIT ${batchRows}),
    gone AS (
      DELETE FROM batches b USING scanned l
      WHERE b.partner_id = $1 AND b.id = l.id AND l.closed_at < $3
        AND NOT EXISTS (SELECT FROM transactions t WHERE t.partner_id = $1 AND t.batch_id = b.id)
      RETURNING b.id)
    SELECT (SELECT count(*) FROM gone)::integer AS gone, (SELECT count(*) FROM scanned)::integer AS scanned,
      (SELECT id FROM scanned ORDER BY id DESC LIMIT 1) AS last`);

/**
 * Deletes ledger rows past their retention, in small transactions: a transaction with its whole chain and their
 * Reversals, and a batch once it is empty. Transactions in flight, in doubt, pending, parked, in an open batch or with an open
 * exception of clearing stay, together with their chain.
 */
export class LedgerRetention {
  readonly #options: LedgerRetentionOptions;
  #stopping = false;
  #running: Promise<void> = Promise.resolve();

  constructor(options: LedgerRetentionOptions) {
    this.#options = options;
  }

  /** Called every hour; one instance at a time runs it. Resolves when nothing more may be deleted. */
  run(): Promise<void> {
    this.#running = this.#running.catch(() => undefined).then(() => this.#run());
    return this.#running;
  }

  /** Resolves after the running transaction. */
  async stop(): Promise<void> {
    this.#stopping = true;
    await this.#running.catch(() => undefined);
  }

  async #run(): Promise<void> {
    const { homes, clock, ledgerDays } = this.#options;
    const beforeMs = clock.nowMs() - ledgerDays * dayMs;
    const before = new Date(beforeMs);
    const values = [lowestId(beforeMs), before];
    const rows = await homes.gather(({ engine }) => partnersWithOld.rows(engine, values));
    for (const { id } of rows) {
      await this.#walk(id, before, { scan: byTime, last: lowestId(beforeMs), from: [] });
      await this.#walk(id, before, { scan: untimed, last: before, from: ["epoch"] });
      await this.#dropBatches(id, before);
    }
  }

  /** The engine's connections: no statement here may scan a whole table. */
  #engine(partnerId: PartnerId): Pool {
    return this.#options.homes.of(partnerId).engine;
  }

  async #walk(partnerId: PartnerId, before: Date, { scan, last, from }: Walk): Promise<void> {
    let after: readonly string[] = [nilId, ...from];
    while (!this.#stopping) {
      const [id, ...at] = after;
      const scanned = await this.#transaction(partnerId, async (client) => {
        const rows = await scan.rows(client, [partnerId, id, last, ...at]);
        if (rows.length > 0) await this.#dropChainsOf(client, partnerId, before, rows);
        return rows;
      });
      const lastSeen = scanned?.at(-1);
      if (lastSeen === undefined || scanned?.length !== batchRows) return;
      after = lastSeen.at === null ? [lastSeen.id] : [lastSeen.id, lastSeen.at];
    }
  }

  async #dropChainsOf(
    client: PoolClient,
    partnerId: PartnerId,
    before: Date,
    scanned: readonly Scanned[],
  ): Promise<void> {
    const rows = await families.rows(client, [partnerId, scanned.map(({ id }) => id)]);
    const all = [...new Set(rows.map(({ id }) => id))].sort();
    const over = await lockOver.rows(client, [partnerId, all, before]);
    const isOver = new Set(over.map(({ id }) => id));
    const staying = new Set(rows.filter(({ id }) => !isOver.has(id)).map(({ of }) => of));
    const going = [...new Set(rows.filter(({ of }) => !staying.has(of)).map(({ id }) => id))].sort();
    if (going.length === 0) return;
    this.#options.onDropped("reversals", await dropReversals.run(client, [partnerId, going]));
    this.#options.onDropped("transactions", await dropTransactions.run(client, [partnerId, going]));
  }

  async #dropBatches(partnerId: PartnerId, before: Date): Promise<void> {
    let after = nilId;
    while (!this.#stopping) {
      const dropped = await dropBatches.first(this.#engine(partnerId), [partnerId, after, before]);
      const { gone, scanned, last } = dropped ?? { gone: 0, scanned: 0, last: null };
      this.#options.onDropped("batches", gone);
      if (last === null || scanned < batchRows) return;
      after = last;
    }
  }

  /** One instance at a time; undefined if another one is running. */
  #transaction<Result>(
    partnerId: PartnerId,
    work: (client: PoolClient) => Promise<Result>,
  ): Promise<Result | undefined> {
    return inTransaction(this.#engine(partnerId), async (client) => {
      const { rows } = await client.query<{ mine: boolean }>("SELECT pg_try_advisory_xact_lock($1) AS mine", [
        retentionLock,
      ]);
      return rows[0]?.mine === true ? await work(client) : undefined;
    });
  }
}

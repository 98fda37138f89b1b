import type { Pool } from "pg";
import type { PartnerId, TransactionId } from "../ids.ts";
import type { DueReversal, ReversalEnd, ReversalStore } from "../ledger/reverser.ts";

// Taken until its answer must have come: whoever took it and is gone by then has it repeated by another.
const takeDue = {
  name: "take_due_reversals",
  text: `
    WITH due AS MATERIALIZED (
      SELECT r.partner_id, r.transaction_id FROM reversals r
      WHERE r.state = 'PENDING' AND r.due_at <= now() ORDER BY r.due_at LIMIT $1 FOR UPDATE SKIP LOCKED)
    UPDATE reversals r SET due_at = now() + $2 * interval '1 millisecond', tries = r.tries + 1
    FROM due WHERE r.partner_id = due.partner_id AND r.transaction_id = due.transaction_id
    RETURNING r.partner_id, r.transaction_id, r.tries, r.requested_by`,
};

const postpone = {
  name: "postpone_reversal",
  text: `
    UPDATE reversals SET due_at = now() + $3 * interval '1 millisecond'
    WHERE partner_id = $1 AND transaction_id = $2 AND state = 'PENDING'`,
};

// Undone: what it held is free, and a partner's REVERSAL that waited for it has ended its original.
const end = {
  name: "end_reversal",
  text: `
    WITH ended AS (
      UPDATE reversals SET state = $3::text, response_code = $4 WHERE partner_id = $1 AND transaction_id = $2
      RETURNING partner_id, transaction_id),
    own AS (
      UPDATE transactions t SET reversal_state = lower($3::text),
        successor_state = CASE WHEN t.successor_command <> 'REVERSAL' THEN t.successor_state
          WHEN $3::text = 'DONE' THEN 'done' ELSE 'in_doubt' END
      FROM ended e WHERE t.partner_id = e.partner_id AND t.id = e.transaction_id)
    UPDATE transactions o SET successor_id = NULL, successor_command = NULL, successor_state = NULL
    FROM ended e
    WHERE $3::text = 'DONE' AND o.partner_id = e.partner_id AND o.successor_id = e.transaction_id
      AND o.successor_state = 'in_doubt' AND o.id = (
        SELECT t.original_id FROM transactions t WHERE t.partner_id = e.partner_id AND t.id = e.transaction_id)`,
};

// Asked for by a partner: the transaction had succeeded, and is held by the REVERSAL already.
const queue = {
  name: "queue_reversal",
  text: `
    WITH original AS (
      UPDATE transactions SET reversal_state = 'pending'
      WHERE partner_id = $1 AND id = $2 AND state <> 'INIT'
      RETURNING partner_id, id, tid)
    INSERT INTO reversals AS r (partner_id, transaction_id, tid, requested_by)
    SELECT partner_id, id, tid, $3 FROM original
    ON CONFLICT (partner_id, transaction_id) DO UPDATE SET state = 'PENDING', due_at = now(),
      requested_by = coalesce(excluded.requested_by, r.requested_by)`,
};

// A late approval: what was undone, or never seen, may stand now.
const repeat = {
  name: "repeat_reversal",
  text: `
    UPDATE reversals SET state = 'PENDING', due_at = now() WHERE partner_id = $1 AND transaction_id = $2`,
};

/** Reversals on their way, in PostgreSQL. */
export class PostgresReversals implements ReversalStore {
  readonly #engine: Pool;

  constructor(engine: Pool) {
    this.#engine = engine;
  }

  async takeDue(rowsMax: number, heldForMs: number): Promise<readonly DueReversal[]> {
    const { rows } = await this.#engine.query<{
      partner_id: PartnerId;
      transaction_id: TransactionId;
      tries: number;
      requested_by: TransactionId | null;
    }>({ ...takeDue, values: [rowsMax, heldForMs] });
    return rows.map((row) => ({
      partnerId: row.partner_id,
      transactionId: row.transaction_id,
      tries: row.tries,
      requestedBy: row.requested_by,
    }));
  }

  async postpone({ partnerId, transactionId }: DueReversal, delayMs: number): Promise<void> {
    await this.#engine.query({ ...postpone, values: [partnerId, transactionId, delayMs] });
  }

  async end({ partnerId, transactionId }: DueReversal, { state, responseCode }: ReversalEnd): Promise<void> {
    await this.#engine.query({ ...end, values: [partnerId, transactionId, state, responseCode] });
  }

  async queue(partnerId: PartnerId, transactionId: TransactionId, requestedBy: TransactionId): Promise<void> {
    await this.#engine.query({ ...queue, values: [partnerId, transactionId, requestedBy] });
  }

  async repeat(partnerId: PartnerId, transactionId: TransactionId): Promise<void> {
    await this.#engine.query({ ...repeat, values: [partnerId, transactionId] });
  }
}

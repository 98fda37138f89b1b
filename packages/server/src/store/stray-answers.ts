import type { Pool } from "pg";
import type { PartnerId, TransactionId } from "../ids.ts";
import type { Doubtful, StrayAnswerStore } from "../ledger/stray-answers.ts";

// What was not answered has a Reversal. A host that answers after days answers nothing that could be known again.
const doubtful = {
  name: "doubtful_of_terminal",
  text: `
    SELECT partner_id, transaction_id FROM reversals
    WHERE tid = $1 AND created_at > now() - interval '2 days'
    ORDER BY created_at DESC LIMIT $2`,
};

/** What was in doubt on a terminal, in PostgreSQL. */
export class PostgresStrayAnswers implements StrayAnswerStore {
  readonly #engine: Pool;

  constructor(engine: Pool) {
    this.#engine = engine;
  }

  async doubtful(tid: string, rowsMax: number): Promise<readonly Doubtful[]> {
    const { rows } = await this.#engine.query<{ partner_id: PartnerId; transaction_id: TransactionId }>({
      ...doubtful,
      values: [tid, rowsMax],
    });
    return rows.map((row) => ({ partnerId: row.partner_id, transactionId: row.transaction_id }));
  }
}

import type { PartnerId, TransactionId } from "../../ids.ts";
import type { ReversedRecently, UnmatchedAnswerStore } from "../../ledger/unmatched-answers.ts";
import type { Homes } from "../database/homes.ts";

// Every unanswered command has a Reversal. After days, an answer can no longer be matched.
const reversedRecently = {
  name: "doubtful_of_terminal",
  text: `
    SELECT partner_id, transaction_id, created_at FROM reversals
    WHERE tid = $1 AND created_at > now() - interval '2 days'
    ORDER BY created_at DESC LIMIT $2`,
};

/** Recently reversed transactions of a terminal, in PostgreSQL. */
export class PostgresUnmatchedAnswers implements UnmatchedAnswerStore {
  readonly #homes: Homes;

  constructor(homes: Homes) {
    this.#homes = homes;
  }

  async reversedRecently(tid: string, rowsMax: number): Promise<readonly ReversedRecently[]> {
    type Row = { readonly partner_id: PartnerId; readonly transaction_id: TransactionId; readonly created_at: Date };
    const values = [tid, rowsMax];
    const rows = await this.#homes.gather(
      async ({ engine }) => (await engine.query<Row>({ ...reversedRecently, values })).rows,
    );
    return [...rows]
      .sort((a, b) => b.created_at.getTime() - a.created_at.getTime())
      .slice(0, rowsMax)
      .map((row) => ({ partnerId: row.partner_id, transactionId: row.transaction_id }));
  }
}

import type { PartnerId, TransactionId } from "../../ids.ts";
import type { Undecided, UnmatchedAnswerStore } from "../../ledger/unmatched-answers.ts";
import type { Homes } from "../database/homes.ts";

// Every unanswered command has a Reversal, once its instance or another one has ended it. Days after that is done, an
// answer can no longer be matched.
const undecided = (name: string, ofTerminal: string) => ({
  name,
  text: `
    SELECT partner_id, transaction_id, created_at FROM reversals
    WHERE ${ofTerminal} AND (created_at > now() - interval '2 days' OR state <> 'DONE')
    UNION ALL
    SELECT partner_id, id, created_at FROM transactions WHERE state = 'INIT' AND origin = 'command' AND ${ofTerminal}
    ORDER BY created_at DESC LIMIT $2`,
});
const undecidedOfTerminal = undecided("undecided_of_terminal", "tid = $1");
const undecidedOfAny = undecided("undecided_of_any", "$1::text = ''");

/** Transactions of which an answer may still come, in PostgreSQL. */
export class PostgresUnmatchedAnswers implements UnmatchedAnswerStore {
  readonly #homes: Homes;

  constructor(homes: Homes) {
    this.#homes = homes;
  }

  async undecided(tid: string, rowsMax: number): Promise<readonly Undecided[]> {
    type Row = { readonly partner_id: PartnerId; readonly transaction_id: TransactionId; readonly created_at: Date };
    const statement = tid === "" ? undecidedOfAny : undecidedOfTerminal;
    const values = [tid, rowsMax];
    const rows = await this.#homes.gather(
      async ({ engine }) => (await engine.query<Row>({ ...statement, values })).rows,
    );
    return [...rows]
      .sort((a, b) => b.created_at.getTime() - a.created_at.getTime())
      .slice(0, rowsMax)
      .map((row) => ({ partnerId: row.partner_id, transactionId: row.transaction_id }));
  }
}

import type { Logger } from "pino";
import type { UnmatchedAnswer } from "../acquirer/acquirer.ts";
import type { PartnerId, TransactionId } from "../ids.ts";
import { headerOf } from "./acquirer-message.ts";
import type { Ledger } from "./ledger.ts";
import type { TransactionStore } from "./store.ts";
import type { Transaction } from "./transaction.ts";

export interface ReversedRecently {
  readonly partnerId: PartnerId;
  readonly transactionId: TransactionId;
}

export interface UnmatchedAnswerStore {
  /** Transactions with a Reversal on a terminal of this number in the last two days, the newest first. */
  reversedRecently(tid: string, rowsMax: number): Promise<readonly ReversedRecently[]>;
}

export interface UnmatchedAnswersParts {
  readonly store: UnmatchedAnswerStore;
  readonly transactions: Pick<TransactionStore, "find">;
  readonly ledger: Pick<Ledger, "answeredLate">;
  readonly log: Logger;
}

const rowsMax = 100;

/**
 * Finds the transaction of an answer that matches no open request: its instance died, or it is very late. Its command
 * has ended and is reversed; an approval repeats the Reversal, as every late one does.
 */
export class UnmatchedAnswers {
  readonly #parts: UnmatchedAnswersParts;

  constructor(parts: UnmatchedAnswersParts) {
    this.#parts = parts;
  }

  /** Never rejects: an answer that cannot be looked up now is logged, and the Reversal stays as it is. */
  async handle(acquirer: string, answer: UnmatchedAnswer): Promise<void> {
    const { ledger, log } = this.#parts;
    try {
      const transaction = await this.#transactionOf(acquirer, answer);
      if (transaction !== undefined) ledger.answeredLate(transaction, answer);
    } catch (error) {
      log.error({ err: error, tid: answer.tid, traceNo: answer.traceNo }, "a late answer could not be looked up");
    }
  }

  async #transactionOf(acquirer: string, answer: UnmatchedAnswer): Promise<Transaction | undefined> {
    const { store: strayAnswers, transactions } = this.#parts;
    for (const { partnerId, transactionId } of await strayAnswers.reversedRecently(answer.tid, rowsMax)) {
      const transaction = await transactions.find(partnerId, transactionId);
      if (transaction?.acquirer === acquirer && isOf(answer, transaction)) return transaction;
    }
    return undefined;
  }
}

function isOf(answer: UnmatchedAnswer, { command, facts }: Transaction): boolean {
  const { mid, traceNo, atMs } = headerOf(facts.fields);
  return mid === answer.mid && traceNo === answer.traceNo && answer.mayAnswer(command, atMs);
}

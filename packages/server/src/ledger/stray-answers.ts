import type { Logger } from "pino";
import type { StrayAnswer } from "../acquirer/acquirer.ts";
import type { PartnerId, TransactionId } from "../ids.ts";
import type { Ledger } from "./ledger.ts";
import { headerOf } from "./message.ts";
import type { TransactionStore } from "./store.ts";
import type { Transaction } from "./transaction.ts";

export interface Doubtful {
  readonly partnerId: PartnerId;
  readonly transactionId: TransactionId;
}

export interface StrayAnswerStore {
  /** What got a Reversal on a terminal of this number in the last two days, the youngest first. */
  doubtful(tid: string, rowsMax: number): Promise<readonly Doubtful[]>;
}

export interface StrayAnswerParts {
  readonly strayAnswers: StrayAnswerStore;
  readonly transactions: Pick<TransactionStore, "find">;
  readonly ledger: Pick<Ledger, "answeredLate">;
  readonly log: Logger;
}

const rowsMax = 100;

/**
 * Finds the transaction of an answer that nobody waits for: an instance that is gone asked, or it was long ago. Its
 * command has ended and is reversed; an approval repeats the Reversal, as every late one does.
 */
export class StrayAnswers {
  readonly #parts: StrayAnswerParts;

  constructor(parts: StrayAnswerParts) {
    this.#parts = parts;
  }

  /** Never rejects: what cannot be looked up now is logged, and the Reversal stands as it is. */
  async take(answer: StrayAnswer): Promise<void> {
    const { ledger, log } = this.#parts;
    try {
      const transaction = await this.#transactionOf(answer);
      if (transaction !== undefined) ledger.answeredLate(transaction, answer.responseCode);
    } catch (error) {
      log.error({ err: error, tid: answer.tid, traceNo: answer.traceNo }, "a late answer could not be looked up");
    }
  }

  async #transactionOf(answer: StrayAnswer): Promise<Transaction | undefined> {
    const { strayAnswers, transactions } = this.#parts;
    for (const { partnerId, transactionId } of await strayAnswers.doubtful(answer.tid, rowsMax)) {
      const transaction = await transactions.find(partnerId, transactionId);
      if (transaction !== undefined && isOf(answer, transaction)) return transaction;
    }
    return undefined;
  }
}

function isOf(answer: StrayAnswer, { command, facts }: Transaction): boolean {
  const { mid, traceNo, atMs } = headerOf(facts.fields);
  return mid === answer.mid && traceNo === answer.traceNo && answer.mayAnswer(command, atMs);
}

import { setTimeout as sleep } from "node:timers/promises";
import type { Logger } from "pino";
import type { AcquirerAnswer, BatchTotals, UnmatchedAnswer } from "../../acquirer/acquirer.ts";
import { approvedCode } from "../../response-codes.ts";
import type { Completer } from "../completer.ts";
import { backoffMs } from "../due-work.ts";
import { countedByEach, settlementOf } from "../exchange/acquirer-message.ts";
import type { Transaction, TransactionStore } from "../store.ts";
import type { DueSettlement, SentSettlement, SettlementStore } from "./store.ts";

/** An hour. */
const lateTriesMax = 64;

export interface LateAnswersParts {
  readonly settlements: SettlementStore;
  readonly transactions: TransactionStore;
  readonly completer: Completer;
  readonly log: Logger;
}

/** The settler, for a Settlement that runs. */
interface Running {
  isStopping(): boolean;
  finish(due: DueSettlement, transaction: Transaction, totals: BatchTotals, answer: AcquirerAnswer): Promise<unknown>;
}

/** Answers to Settlements that came after their time-outs, or after the processes that asked had died. */
export class LateAnswers {
  readonly #parts: LateAnswersParts;
  readonly #running: Running;

  constructor(parts: LateAnswersParts, running: Running) {
    this.#parts = parts;
    this.#running = running;
  }

  /**
   * Takes an answer that matches no open request: the process that asked died, or the answer is very late.
   *
   * @returns whether the Settlement that it answers is known. If it may be that of several, only the acquirer knows
   * which of the batches it has settled
   */
  async answeredUnmatched(acquirer: string, answer: UnmatchedAnswer): Promise<boolean> {
    const { settlements, transactions } = this.#parts;
    const answered: (() => Promise<void>)[] = [];
    for (const sent of await settlements.unanswered(answer.tid)) {
      const transaction = await transactions.find(sent.partnerId, sent.id);
      if (transaction?.acquirer !== acquirer) continue;
      const totals = sent.totals ?? (await settlements.totals(sent.partnerId, sent.batchId));
      const message = { ...settlementOf(sent, transaction, totals), ...(sent.isUploaded && sent.numbers) };
      if (answer.mayAnswer(message)) answered.push(() => this.answered(sent, totals, answer));
    }
    const [only, another] = answered;
    if (only === undefined || another !== undefined) return false;
    await only();
    return true;
  }

  /**
   * Takes an answer after the time-out: it ends a Settlement that runs, and is kept for one that was aborted. The
   * acquirer does not say it again, so failures, such as an unavailable database, are retried.
   */
  async answered(due: SentSettlement, totals: BatchTotals, answer: AcquirerAnswer): Promise<void> {
    for (let tries = 1; ; tries += 1) {
      try {
        return await this.#takeLate(due, totals, answer);
      } catch (error) {
        this.#parts.log.error({ err: error, transaction: due.id }, "a late answer to a settlement could not be kept");
        if (this.#running.isStopping() || tries === lateTriesMax) throw error;
      }
      await sleep(backoffMs(tries), undefined, { ref: false });
    }
  }

  async #takeLate(due: SentSettlement, totals: BatchTotals, answer: AcquirerAnswer): Promise<void> {
    const { settlements, transactions } = this.#parts;
    const transaction = await transactions.find(due.partnerId, due.id);
    if (transaction?.state === "ERROR") return await this.keep(due, totals, answer);
    const running = await settlements.find(due.partnerId, due.id);
    // Other totals need an upload: the answer to the repetition leads to it.
    if (transaction === undefined || running === undefined || answer.responseCode !== approvedCode) return;
    await this.#running.finish(running, transaction, totals, answer);
  }

  /** The Settlement was aborted: only the acquirer counts the batch as settled. */
  async keep(
    { partnerId, id, tid, batchId }: SentSettlement,
    totals: BatchTotals,
    given: Pick<AcquirerAnswer, "responseCode"> & Partial<AcquirerAnswer>,
  ): Promise<void> {
    const { settlements, transactions, completer } = this.#parts;
    const aborted = await transactions.find(partnerId, id);
    if (aborted?.state !== "ERROR" || given.responseCode !== approvedCode) return;
    const { responseCode, refId = "", settlementDate, ownTotals } = given;
    const answer = { responseCode, refId, ...(settlementDate && { settlementDate }), ...(ownTotals && { ownTotals }) };
    const batchNo = aborted.facts.fields["batchNo"] ?? "";
    const kept = await settlements.keepLate(partnerId, tid, { settlementId: id, batchId, batchNo, answer, totals });
    const batch = kept === "entered" ? "in_doubt" : (kept ?? "settled otherwise");
    const detail = { tid, batchNo, batch, responseCode, refId, settlementDate, ...countedByEach(totals, given) };
    completer.record(aborted, "settlement_late", detail);
  }
}

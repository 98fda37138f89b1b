import { setTimeout as sleep } from "node:timers/promises";
import type { Logger } from "pino";
import type { Acquirers, UnmatchedAnswer } from "../../acquirer/acquirer.ts";
import type { PartnerId, TransactionId } from "../../ids.ts";
import type { EventSink } from "../../telemetry/events.ts";
import type { Ledger } from "../ledger.ts";
import type { LateAnswers } from "../settlements/late-answers.ts";
import type { Transaction, TransactionStore } from "../store.ts";
import { headerOf } from "./acquirer-message.ts";

export interface Undecided {
  readonly partnerId: PartnerId;
  readonly transactionId: TransactionId;
}

export interface UnmatchedAnswerStore {
  /**
   * Transactions with this trace number that are in flight, or have a Reversal that is not done or not older than two
   * days. One look: until it is over, nobody else knows of the answer.
   *
   * @param tid of their terminal; empty: of any
   */
  undecided(tid: string, traceNo: string): Promise<readonly Undecided[]>;
}

export interface UnmatchedAnswersParts {
  readonly store: UnmatchedAnswerStore;
  readonly transactions: Pick<TransactionStore, "find">;
  readonly acquirers: Pick<Acquirers, "of">;
  readonly ledger: Pick<Ledger, "answeredLate">;
  readonly lateSettlements: Pick<LateAnswers, "answeredUnmatched">;
  readonly events: EventSink;
  readonly log: Logger;
}

/** A command in flight has ended, or was taken over, by then. */
const endsWithinMs = 60_000;
const pollEveryMs = 250;

/**
 * Finds the transaction of an answer that matches no open request: its instance died, or it is very late. Its command
 * has ended and is reversed, or will be; an approval repeats the Reversal, as every late one does. That of a Settlement
 * ends it, or is kept for the next one. An approval of which no transaction is known is an event: somebody may be
 * charged for it, or a batch be settled.
 */
export class UnmatchedAnswers {
  readonly #parts: UnmatchedAnswersParts;
  readonly #handled = new Set<Promise<void>>();
  readonly #stopping = new AbortController();

  constructor(parts: UnmatchedAnswersParts) {
    this.#parts = parts;
  }

  /** Never rejects: an approval that cannot be looked up now is an event too. */
  handle(acquirer: string, answer: UnmatchedAnswer): Promise<void> {
    const handled = this.#handle(acquirer, answer).finally(() => this.#handled.delete(handled));
    this.#handled.add(handled);
    return handled;
  }

  /**
   * Resolves when every answer is its transaction's, or an event: nobody else knows of it. That of a command in flight,
   * which another instance may end, is an event.
   */
  async stop(): Promise<void> {
    this.#stopping.abort();
    await Promise.all(this.#handled);
  }

  async #handle(acquirer: string, answer: UnmatchedAnswer): Promise<void> {
    const { lateSettlements, log } = this.#parts;
    try {
      const isKnown = answer.isSettlement
        ? await lateSettlements.answeredUnmatched(acquirer, answer)
        : await this.#authorisationAnswered(acquirer, answer);
      if (!isKnown) await this.#report(acquirer, answer);
    } catch (error) {
      log.error({ err: error, ...answer.known }, "a late answer could not be looked up");
      await this.#report(acquirer, answer);
    }
  }

  /** @returns whether a transaction is known that it answers */
  async #authorisationAnswered(acquirer: string, answer: UnmatchedAnswer): Promise<boolean> {
    const transactions = await this.#transactionsOf(acquirer, answer);
    // If there are several, only the acquirer knows which it means. To reverse what was declined does no harm.
    const ended = await Promise.all(transactions.map((transaction) => this.#ended(transaction)));
    for (const transaction of ended)
      if (transaction.reversal !== null) this.#parts.ledger.answeredLate(transaction, answer);
    // One that was answered in another way, too, has no Reversal which could be repeated.
    return ended.some(({ state, reversal }) => reversal !== null || state === "SUCCESS");
  }

  /** Only its end decides whether it is reversed. */
  async #ended(transaction: Transaction): Promise<Transaction> {
    const { partnerId, id } = transaction;
    const { signal } = this.#stopping;
    let latest: Transaction | undefined = transaction;
    for (let waitedMs = 0; latest?.state === "INIT" && waitedMs < endsWithinMs; waitedMs += pollEveryMs) {
      if (signal.aborted) break;
      await sleep(pollEveryMs, undefined, { ref: false, signal }).catch(() => undefined);
      latest = await this.#parts.transactions.find(partnerId, id);
    }
    return latest ?? transaction;
  }

  async #report(acquirer: string, { responseCode, isAmbiguous = false, known }: UnmatchedAnswer): Promise<void> {
    const { acquirers, events } = this.#parts;
    if (!isAmbiguous && !acquirers.of(acquirer).approvals.has(responseCode)) return;
    const detail = { ...known, responseCode, ...(acquirer !== "" && { acquirer }) };
    await events.record({ kind: "approval_unmatched", partnerId: null, subjectId: null, detail });
  }

  async #transactionsOf(acquirer: string, answer: UnmatchedAnswer): Promise<readonly Transaction[]> {
    const { store, transactions } = this.#parts;
    const found: Transaction[] = [];
    if (answer.traceNo === "") return found;
    for (const { partnerId, transactionId } of await store.undecided(answer.tid, answer.traceNo)) {
      const transaction = await transactions.find(partnerId, transactionId);
      if (transaction?.acquirer === acquirer && isOf(answer, transaction)) found.push(transaction);
    }
    return found;
  }
}

/** Its card and its original are not needed, because no answer is matched by them. */
function isOf(answer: UnmatchedAnswer, { command, facts, amountMinor, currency }: Transaction): boolean {
  if (facts.kind !== "card" || amountMinor === null || currency === null) return false;
  const { fields } = facts;
  const { invoiceNo = "", batchNo = "" } = fields;
  return answer.mayAnswer({
    command: command as "SALE" | "PREAUTH",
    ...headerOf(fields),
    ...{ amountMinor, currency, invoiceNo, batchNo },
  });
}

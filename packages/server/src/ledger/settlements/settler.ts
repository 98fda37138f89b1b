import {
  type AcquirerAnswer,
  type AcquirerMessage,
  type Acquirers,
  type BatchTotals,
  NoAnswer,
  NotSent,
} from "../../acquirer/acquirer.ts";
import { againCodes } from "../../commands/reversal.ts";
import { completeSettlement, freezeSettlement } from "../../commands/settlement.ts";
import { completeSystemCommand } from "../../commands/system.ts";
import type { PartnerId, TransactionId } from "../../ids.ts";
import { approvedCode, duplicateCode, malfunctionCode, totalsDifferCode } from "../../response-codes.ts";
import { backoffMs, DueWork } from "../due-work.ts";
import { countedByEach, settlementOf, uploadOf } from "../exchange/acquirer-message.ts";
import type { CardVault } from "../exchange/card-vault.ts";
import type { Transaction } from "../store.ts";
import { LateAnswers, type LateAnswersParts } from "./late-answers.ts";
import type { DueSettlement, MessageNumbers } from "./store.ts";

export interface SettlerParts extends LateAnswersParts {
  readonly acquirers: Pick<Acquirers, "of">;
  readonly cards: CardVault;
  readonly acquirerTimeoutMs: number;
}

const rowsMax = 20;
const graceMs = 10_000;
const quietPollMs = 100;
/** While an acquirer answers no Reversals, every settlement waits: their looks must not become the database's load. */
const quietPollMsMax = 2_000;
/** A timer of Node ends up to a millisecond early, and the row is due by the clock of the database. */
const timerMarginMs = 5;
const entriesAtOnce = 100;
const noNumbers: MessageNumbers = { traceNos: [], atMs: 0, repeat: false };
/** From this try on the operator should know of an unanswered settlement. */
const unansweredAfterTries = 4;

/**
 * Runs settlements: waits until the batch is quiet, sends its totals, uploads it if they differ, sends them again, and
 * closes or reopens the batch. Each step is stored in the database, so that any instance can continue.
 *
 * ```
 * SETTLEMENT ──► waiting ──(the batch is quiet)──► sending ──(00)──► its batch is closed
 *                                                  sending ──(a first 95)──► uploading
 *                                                  sending ──(another code)──► its batch is open again
 * BATCH_UPLOAD ──► waiting ──► uploading ──(all uploaded)──► sending (a BATCH_UPLOAD: ended)
 *                              uploading ──(refused)──► ended, and its batch is open
 * ```
 *
 * A step without an answer is repeated. A late answer that accepts the batch ends the Settlement at any step.
 */
export class Settler extends DueWork<DueSettlement> {
  readonly #parts: SettlerParts;
  #stopping = false;
  /** Ends Settlements by answers that came late. */
  readonly late: LateAnswers;

  constructor(parts: SettlerParts) {
    super("settlements", parts.log);
    this.#parts = parts;
    this.late = new LateAnswers(parts, {
      isStopping: () => this.#stopping,
      finish: (...ended) => this.#finish(...ended),
    });
  }

  override stop(): Promise<void> {
    this.#stopping = true;
    return super.stop();
  }

  protected claim(): Promise<readonly DueSettlement[]> {
    return this.#parts.settlements.claimDue(rowsMax, this.#heldForMs);
  }

  /** Ends a running one as ERROR 96, on the operator's decision. False if it has ended already. */
  async abort(partnerId: PartnerId, id: TransactionId): Promise<boolean> {
    const { settlements, transactions } = this.#parts;
    const due = await settlements.find(partnerId, id);
    const transaction = await transactions.find(partnerId, id);
    if (due === undefined || transaction === undefined) return false;
    const totals = await settlements.totals(partnerId, due.batchId);
    return this.#finish(due, transaction, totals, { responseCode: malfunctionCode });
  }

  get #heldForMs(): number {
    return this.#parts.acquirerTimeoutMs + graceMs;
  }

  protected async run(due: DueSettlement): Promise<void> {
    const { settlements } = this.#parts;
    const transaction = await this.#parts.transactions.find(due.partnerId, due.id);
    if (transaction === undefined) throw new Error(`There is no transaction ${due.id} for this settlement.`);
    let at = due;
    try {
      while (!this.#stopping) {
        const then = await this.#step(at, transaction, (moved) => {
          at = moved;
        });
        if (then === undefined) return;
        at = then;
      }
      await settlements.postpone(at, 0);
    } catch (error) {
      if (!(error instanceof NoAnswer || error instanceof NotSent)) throw error;
      // It stays CLOSING, and the same request is repeated: a settlement is never reversed. Checks in the step
      // `waiting` are not counted, because they say nothing about the acquirer.
      if (at.tries >= unansweredAfterTries) {
        this.#parts.completer.recordOnce(transaction, "settlement_unanswered", {
          tid: at.tid,
          step: at.step,
          tries: at.tries,
        });
      }
      await settlements.postpone(at, backoffMs(at.tries));
    }
  }

  /**
   * @param onMoved called with each position within the step that was recorded
   * @returns the next step; undefined if it has ended, or waits
   */
  async #step(
    due: DueSettlement,
    transaction: Transaction,
    onMoved: (moved: DueSettlement) => void,
  ): Promise<DueSettlement | undefined> {
    if (due.kind === "SETTLEMENT" && (await this.#isReported(due, transaction))) return undefined;
    if (due.step === "waiting") return this.#wait(due);
    if (due.step === "uploading") return this.#upload(due, transaction, onMoved);
    return this.#send(due, transaction);
  }

  async #wait(due: DueSettlement): Promise<DueSettlement | undefined> {
    if (due.kind === "BATCH_UPLOAD") return this.#advance(due, { step: "uploading" });
    const sending = await this.#advance(due, { step: "sending" });
    if (sending !== undefined) return sending;
    const waitMs = Math.min(quietPollMs * due.tries, quietPollMsMax);
    await this.#parts.settlements.postpone(due, waitMs);
    setTimeout(() => this.wake(), waitMs + timerMarginMs).unref();
    return undefined;
  }

  /** The acquirer has settled the batch by an earlier Settlement, whose answer came late. */
  async #isReported(due: DueSettlement, transaction: Transaction): Promise<boolean> {
    const { settlements } = this.#parts;
    const late = await settlements.late(due.partnerId, due.tid, due.batchId);
    if (late?.state !== "closed") return false;
    const totals = await settlements.totals(due.partnerId, due.batchId);
    await this.#finish(due, transaction, totals, late.answer, "reported");
    return true;
  }

  async #send(due: DueSettlement, transaction: Transaction): Promise<DueSettlement | undefined> {
    const totals = await this.#parts.settlements.totals(due.partnerId, due.batchId);
    const onLate = (late: AcquirerAnswer) => void this.late.answered(due, totals, late).catch(() => undefined);
    const repeat = due.tries > 1;
    const numbers = due.isUploaded ? await this.#ownNumber(due) : undefined;
    const message = { ...settlementOf(due, transaction, totals), repeat, ...numbers };
    const answer = await this.#ask(transaction.acquirer, message, onLate);
    if (answer.responseCode !== approvedCode && (await this.#isReported(due, transaction))) return undefined;
    // An earlier try may have settled the batch, and this answer does not say so.
    if (message.repeat && againCodes.has(answer.responseCode)) throw new NoAnswer("The acquirer cannot say now");
    if (answer.responseCode === totalsDifferCode && !due.isUploaded) {
      const { tid } = due;
      this.#parts.completer.record(transaction, "settlement_mismatched", {
        tid,
        batchNo: transaction.facts.fields["batchNo"],
        ...countedByEach(totals, answer),
      });
      return this.#advance(due, { step: "uploading" });
    }
    await this.#finish(due, transaction, totals, answer);
    return undefined;
  }

  async #upload(
    from: DueSettlement,
    transaction: Transaction,
    onMoved: (moved: DueSettlement) => void,
  ): Promise<DueSettlement | undefined> {
    const { settlements } = this.#parts;
    let due = from;
    const { partnerId, batchId, uploadedUpTo } = due;
    const entries = await settlements.entries(partnerId, batchId, uploadedUpTo, entriesAtOnce);
    const { traceNos, atMs, repeat } =
      entries.length === 0 ? noNumbers : await settlements.reserveTraceNumbers(due, entries.length);
    // An open batch may have grown since the numbers were reserved: the rest belongs to the next step.
    const page = entries.slice(0, traceNos.length);
    const cards = await this.#parts.cards.all(
      transaction,
      page.map(({ chainId }) => chainId),
    );
    for (const [nth, entry] of page.entries()) {
      const before = page[nth - 1];
      // A page may take longer than its claim was for.
      const isClaimed =
        before === undefined
          ? await settlements.postpone(due, this.#heldForMs)
          : await settlements.acknowledge(due, before.id, this.#heldForMs);
      if (!isClaimed) return undefined;
      if (before !== undefined) {
        due = { ...due, uploadedUpTo: before.id, tries: 1 };
        onMoved(due);
      }
      // Between two messages: another instance continues after the last one that was answered.
      if (this.#stopping) return due;
      // Only the first of those that were numbered before may have been sent.
      const isRepeat = repeat && nth === 0;
      const { responseCode } = await this.#ask(transaction.acquirer, {
        ...uploadOf(entry, transaction),
        ...cards.get(entry.chainId),
        atMs,
        repeat: isRepeat,
        traceNo: traceNos[nth] ?? "",
      });
      if (responseCode === approvedCode || (isRepeat && responseCode === duplicateCode)) continue;
      const refused = { tid: due.tid, transactionId: entry.id, responseCode };
      this.#parts.completer.record(transaction, "upload_refused", refused);
      const totals = await settlements.totals(partnerId, batchId);
      await this.#finish(due, transaction, totals, { responseCode });
      return undefined;
    }
    const last = page.at(-1);
    if (last !== undefined) return this.#advance(due, { uploadedUpTo: last.id });
    if (due.kind === "SETTLEMENT") return this.#advance(due, { step: "sending", isUploaded: true });
    const totals = await this.#parts.settlements.totals(partnerId, batchId);
    await this.#finish(due, transaction, totals, { responseCode: approvedCode });
    return undefined;
  }

  /** After an upload the totals are sent as a new message. */
  async #ownNumber(due: DueSettlement) {
    const { traceNos, atMs, repeat } = await this.#parts.settlements.reserveTraceNumbers(due, 1);
    return { traceNo: traceNos[0] ?? "", atMs, repeat };
  }

  async #advance(
    due: DueSettlement,
    next: Partial<Pick<DueSettlement, "step" | "isUploaded" | "uploadedUpTo">>,
  ): Promise<DueSettlement | undefined> {
    const to = { ...due, ...next, tries: 1 };
    return (await this.#parts.settlements.advance(due, to, this.#heldForMs)) ? to : undefined;
  }

  async #finish(
    due: DueSettlement,
    transaction: Transaction,
    totals: BatchTotals,
    acquirerAnswer: Pick<AcquirerAnswer, "responseCode"> & Partial<AcquirerAnswer>,
    settledAs: "closed" | "reported" = "closed",
  ): Promise<boolean> {
    const { responseCode, refId = "", settlementDate } = acquirerAnswer;
    if (transaction.state !== "INIT" || transaction.runBy === null) return false;
    const { tid, batchId } = due;
    const settled = responseCode === approvedCode;
    const end = { tid, batchId, totals };
    const { facts } = transaction;
    if (facts.kind !== "settlement") {
      if (facts.kind !== "system") throw new Error(`A ${transaction.command} settles nothing.`);
      const answer = { responseCode, approveCode: "", refId: "", tc: "" };
      const { approvals } = this.#parts.acquirers.of(transaction.acquirer);
      const outcome = { kind: "answered", answer, approvals } as const;
      const { state, facts: completed } = completeSystemCommand(facts, outcome);
      const batch = { ...end, becomes: "unchanged" as const };
      const uploaded = { state, facts: completed, batch };
      return (await this.#parts.completer.complete(transaction, uploaded, transaction.runBy)) !== undefined;
    }
    const list = settled ? await this.#parts.settlements.counted(due.partnerId, batchId) : [];
    const frozen = freezeSettlement(facts, totals, list);
    const completed = completeSettlement(
      frozen,
      settled ? { settled, refId, settlementDate } : { settled, code: responseCode, refId, settlementDate },
    );
    const batch = { ...end, becomes: settled ? settledAs : ("open" as const) };
    const ended = await this.#parts.completer.complete(transaction, { ...completed, batch }, transaction.runBy);
    const { batchNo } = facts.fields;
    const detail = { tid, batchNo, responseCode, refId, settlementDate, ...countedByEach(totals, acquirerAnswer) };
    if (ended !== undefined && !settled) this.#parts.completer.record(transaction, "settlement_refused", detail);
    if (ended === undefined && settled) await this.late.keep(due, totals, acquirerAnswer);
    return ended !== undefined;
  }

  #ask(
    acquirer: string,
    message: AcquirerMessage,
    onLateAnswer: (answer: AcquirerAnswer) => void = () => undefined,
  ): Promise<AcquirerAnswer> {
    const { acquirers, acquirerTimeoutMs: timeoutMs } = this.#parts;
    return acquirers.of(acquirer).ask(message, { timeoutMs, onLateAnswer });
  }
}

import { setTimeout as sleep } from "node:timers/promises";
import type { Logger } from "pino";
import {
  type AcquirerAnswer,
  type Acquirers,
  NoAnswer,
  NotSent,
  type ReversalMessage,
  reversalMarginMsDefault,
} from "../../acquirer/acquirer.ts";
import type { AcquirerOutcome } from "../../commands/outcome.ts";
import { reportedLateAfterTries, reversalStateAfter } from "../../commands/reversal.ts";
import { newId, type PartnerId, type TransactionId } from "../../ids.ts";
import { unknownCode } from "../../response-codes.ts";
import type { NewEvent } from "../../telemetry/events.ts";
import { type Completer, eventOf, reversalResult } from "../completer.ts";
import { backoffMs, DueWork } from "../due-work.ts";
import { headerOf, referable, referenceTo } from "../exchange/acquirer-message.ts";
import type { CardVault } from "../exchange/card-vault.ts";
import type { Transaction, TransactionStore } from "../store.ts";

/** Running Reversals: one per transaction, until the acquirer has answered it. */
export interface ReversalStore {
  /** Claims due ones for `heldForMs`: no other instance sends them meanwhile, any may afterwards. */
  claimDue(rowsMax: number, heldForMs: number): Promise<readonly DueReversal[]>;
  /** @param responseCode the acquirer's answer; empty without one: the last one stays, as a 25 does in any case */
  postpone(reversal: DueReversal, delayMs: number, responseCode: string): Promise<void>;
  /** Keeps a 25 that came after the time-out of its try, while it is not ended. */
  noteUnknown(partnerId: PartnerId, transactionId: TransactionId): Promise<void>;
  /**
   * Ends a Reversal. Done: what the transaction held is free, and it counts nowhere. Parked: it stays locked. Resolves
   * to undefined, and changes nothing, if it was requested again since it was claimed: then it is sent again. Called
   * again with the same end it resolves to the same.
   */
  end(reversal: DueReversal, end: ReversalEnd): Promise<EndedReversal | undefined>;
  /** Queues the Reversal of a transaction for the partner's REVERSAL that holds it. False if it stands, or is in flight. */
  queue(partnerId: PartnerId, transactionId: TransactionId, requestedBy: TransactionId): Promise<boolean>;
  /**
   * Sends one again that is parked or done. False if it is not in that state, or the totals of a batch are with the
   * acquirer in which its transaction would count otherwise: then no decision of an operator has an effect. Nor is it sent
   * without its acquirer, if that was removed.
   */
  retry(partnerId: PartnerId, transactionId: TransactionId, from: "PARKED" | "DONE"): Promise<boolean | "no_acquirer">;
  /** Ends a parked one as done, on the operator's decision. False as above. */
  resolve(partnerId: PartnerId, transactionId: TransactionId): Promise<boolean>;
  /**
   * Ends a parked one because its transaction stands, on the operator's decision: this counts as a success from now on,
   * and is not reversed again. What its partner was told stays. False as above, also if its open batch has another currency,
   * or its terminal another merchant or acquirer, by now.
   */
  letStand(partnerId: PartnerId, transactionId: TransactionId): Promise<boolean | "other_currency" | "moved">;
  /** Sends it again, unless it stands: its original was sent, or approved, later than it was known. */
  repeat(partnerId: PartnerId, transactionId: TransactionId): Promise<void>;
}

export interface DueReversal {
  readonly partnerId: PartnerId;
  readonly transactionId: TransactionId;
  /** The number of tries, this one included. */
  readonly tries: number;
  /** The time of the first request. */
  readonly queuedAtMs: number;
  /** The time since which its original has certainly left, or never will. */
  readonly sinceLeftMs: number;
  /** The acquirer's last answer, or a 25 before it; empty: none was stored. */
  readonly lastCode: string;
}

export interface EndedReversal {
  /** The partner's REVERSAL that waits for it. */
  readonly requestedBy: TransactionId | null;
}

export interface ReversalEnd {
  readonly state: "DONE" | "PARKED";
  readonly responseCode: string;
  /** Recorded with it. */
  readonly event?: NewEvent;
}

export interface ReverserParts {
  readonly reversals: Pick<ReversalStore, "claimDue" | "postpone" | "noteUnknown" | "end">;
  readonly transactions: TransactionStore;
  readonly completer: Completer;
  readonly acquirers: Pick<Acquirers, "of">;
  readonly cards: CardVault;
  readonly log: Logger;
  readonly acquirerTimeoutMs: number;
  readonly onEnded?: ((transaction: Transaction, end: ReversalEnd) => void) | undefined;
}

const rowsMax = 50;
const graceMs = 10_000;
/** An hour: what fails for longer is no lost connection. */
const endTriesMax = 64;

/** Sends Reversals, and repeats them across restarts until the acquirer answers. */
export class Reverser extends DueWork<DueReversal> {
  readonly #parts: ReverserParts;
  readonly #stopping = new AbortController();

  constructor(parts: ReverserParts) {
    super("reversals", parts.log);
    this.#parts = parts;
  }

  override stop(): Promise<void> {
    this.#stopping.abort();
    return super.stop();
  }

  protected claim(): Promise<readonly DueReversal[]> {
    return this.#parts.reversals.claimDue(rowsMax, this.#parts.acquirerTimeoutMs + graceMs);
  }

  protected async run(due: DueReversal): Promise<void> {
    const { reversals, transactions, completer } = this.#parts;
    const transaction = await transactions.find(due.partnerId, due.transactionId);
    if (transaction === undefined) throw new Error(`There is no transaction ${due.transactionId} to reverse.`);
    const card = await this.#parts.cards.of(transaction);
    const { outcome, site } = await this.#ask(transaction, { ...messageOf(transaction, due), ...card });
    const responseCode = outcome.kind === "answered" ? outcome.answer.responseCode : "";
    const after = reversalStateAfter(outcome, {
      tries: due.tries,
      mayOvertake: due.sinceLeftMs < this.#arrivesWithinMs(transaction),
      isSameSite: site !== undefined && site === transaction.site,
      wasUnknown: due.lastCode === unknownCode,
    });
    if (after === "pending") {
      // The eighth may have been skipped: its instance died, or the Reversal was requested again.
      if (due.tries >= reportedLateAfterTries) {
        completer.recordOnce(transaction, "reversal_late", { tries: due.tries, responseCode });
      }
      return reversals.postpone(due, backoffMs(due.tries), responseCode);
    }
    const state = after === "done" ? "DONE" : "PARKED";
    // A 25 that parks it is not that of the host which got the original.
    const sites = responseCode === unknownCode && { site: site ?? "", originalSite: transaction.site ?? "" };
    const refused = { ...eventOf(transaction, "reversal_refused", { responseCode, ...sites }), id: newId<"event">() };
    const ended = await this.#end(due, { state, responseCode, ...(state === "PARKED" && { event: refused }) });
    if (ended === undefined) return;
    this.#parts.onEnded?.(transaction, { state, responseCode });
    if (state === "PARKED") completer.recordWritten(refused);
    if (ended.requestedBy !== null)
      await this.#answerPartner(due.partnerId, ended.requestedBy, { state, responseCode });
  }

  /**
   * A failed write may have ended it all the same. Then it is not due again, and nobody else would answer the partner's
   * REVERSAL or alert the operator.
   */
  async #end(due: DueReversal, end: ReversalEnd): Promise<EndedReversal | undefined> {
    for (let tries = 1; ; tries += 1) {
      try {
        return await this.#parts.reversals.end(due, end);
      } catch (error) {
        if (this.#stopping.signal.aborted || tries === endTriesMax) throw error;
        this.#parts.log.warn({ err: error, transaction: due.transactionId }, "a Reversal could not be ended yet");
        await sleep(backoffMs(tries), undefined, { signal: this.#stopping.signal }).catch(() => undefined);
      }
    }
  }

  /** For so long after it left, a message may still be booked. */
  #arrivesWithinMs({ acquirer }: Transaction): number {
    const { acquirers, acquirerTimeoutMs } = this.#parts;
    return acquirerTimeoutMs + (acquirers.of(acquirer).reversalMarginMs ?? reversalMarginMsDefault);
  }

  async #ask(
    transaction: Transaction,
    message: ReversalMessage,
  ): Promise<{ readonly outcome: AcquirerOutcome; readonly site?: string | undefined }> {
    const { acquirers, acquirerTimeoutMs: timeoutMs } = this.#parts;
    const acquirer = acquirers.of(transaction.acquirer);
    const onLateAnswer = (late: AcquirerAnswer) => this.#answeredLate(transaction, late);
    try {
      const answer = await acquirer.ask(message, { timeoutMs, onLateAnswer });
      return { outcome: { kind: "answered", answer, approvals: acquirer.approvals }, site: answer.site };
    } catch (error) {
      if (error instanceof NotSent || error instanceof NoAnswer) return { outcome: { kind: "no_answer" } };
      throw error;
    }
  }

  /** The Reversal is sent again, and may be answered 94 then: only a 25 says something that this does not. */
  #answeredLate({ partnerId, id }: Transaction, { responseCode }: AcquirerAnswer): void {
    if (responseCode !== unknownCode) return;
    this.#parts.reversals.noteUnknown(partnerId, id).catch((error: unknown) => {
      this.#parts.log.error({ err: error, transaction: id }, "a late answer to a Reversal could not be kept");
    });
  }

  /**
   * Ends the partner's own REVERSAL with the answer. The Reversal is final by now, so this is retried until it succeeds
   * or this instance ends: then the instance that takes the REVERSAL over finds the answer.
   */
  async #answerPartner(
    partnerId: PartnerId,
    id: TransactionId,
    end: Pick<ReversalEnd, "state" | "responseCode">,
  ): Promise<void> {
    for (let tries = 1; !this.#stopping.signal.aborted; tries += 1) {
      try {
        const reversal = await this.#parts.transactions.find(partnerId, id);
        if (reversal?.state !== "INIT" || reversal.runBy === null) return;
        await this.#parts.completer.complete(reversal, reversalResult(reversal, end), reversal.runBy);
        return;
      } catch (error) {
        this.#parts.log.warn({ err: error, transaction: id }, "a REVERSAL could not be answered yet");
        await sleep(backoffMs(tries), undefined, { signal: this.#stopping.signal }).catch(() => undefined);
      }
    }
  }
}

/** A Reversal carries its original's traceNo. Its own time is that of its request. */
function messageOf({ command, facts, amountMinor, currency }: Transaction, due: DueReversal): ReversalMessage {
  const { fields } = facts;
  return {
    command: "REVERSAL",
    ...headerOf(fields),
    atMs: due.queuedAtMs,
    repeat: due.tries > 1,
    invoiceNo: fields["invoiceNo"] ?? "",
    batchNo: fields["batchNo"] ?? "",
    amountMinor: amountMinor ?? 0n,
    currency: currency ?? "",
    original: referenceTo(referable(command), fields),
  };
}

import { setTimeout as sleep } from "node:timers/promises";
import type { ChargingCommand } from "@paybell/contract";
import type { Logger } from "pino";
import {
  type AcquirerAnswer,
  type AcquirerMessage,
  type Acquirers,
  type BatchTotals,
  type BatchUploadMessage,
  NoAnswer,
  NotSent,
  type SettlementMessage,
  type UnmatchedAnswer,
} from "../acquirer/acquirer.ts";
import { againCodes } from "../commands/reversal.ts";
import { completeSettlement, freezeSettlement } from "../commands/settlement.ts";
import { completeSystemCommand } from "../commands/system.ts";
import type { ChainId, PartnerId, TransactionId } from "../ids.ts";
import { approvedCode, duplicateCode, malfunctionCode, totalsDifferCode } from "../response-codes.ts";
import type { Completer } from "./completer.ts";
import { backoffMs, DueWork } from "./due-work.ts";
import { headerOf, referenceTo } from "./exchange/acquirer-message.ts";
import type { CardVault } from "./exchange/card-vault.ts";
import type { Transaction, TransactionStore } from "./store.ts";

export interface SettlementStore {
  /** Claims due ones for `heldForMs`: no other instance continues them meanwhile, any may afterwards. */
  claimDue(rowsMax: number, heldForMs: number): Promise<readonly DueSettlement[]>;
  /** Undefined once it has ended. */
  find(partnerId: PartnerId, id: TransactionId): Promise<DueSettlement | undefined>;
  /** Sets when it is due. False, and nothing is changed, if the claim has ended: another instance continues it. */
  postpone(settlement: DueSettlement, delayMs: number): Promise<boolean>;
  /** Records that this entry was uploaded, and keeps the claim for `heldForMs`. The other numbers stay reserved. */
  acknowledge(from: DueSettlement, upTo: TransactionId, heldForMs: number): Promise<boolean>;
  /** Records its next step, and keeps the claim for `heldForMs`. False as above. */
  advance(from: DueSettlement, to: DueSettlement, heldForMs: number): Promise<boolean>;
  /**
   * Reserves up to `count` trace numbers of the terminal for the messages of this step, and stores them with it. Called
   * again at the same step it returns the same ones.
   */
  reserveTraceNumbers(settlement: DueSettlement, count: number): Promise<MessageNumbers>;
  /**
   * Whether the terminal is quiet, so that its batch can be counted: no command is in flight, which may still enter the
   * batch, and no Reversal is running, which may still remove one. A Batch Upload is such a command: between the
   * messages of a settlement it would make the host count twice. A Logon and the Settlement itself are not.
   */
  isQuiet(partnerId: PartnerId, tid: string): Promise<boolean>;
  totals(partnerId: PartnerId, batchId: string): Promise<BatchTotals>;
  /** The transactions to upload, in the order of their ids. */
  entries(
    partnerId: PartnerId,
    batchId: string,
    after: TransactionId | null,
    rowsMax: number,
  ): Promise<readonly BatchEntry[]>;
  /**
   * Settlements whose totals have been sent: those that run, and for two days those that ended as ERROR.
   *
   * @param tid of their terminal; empty: of any
   */
  unanswered(tid: string): Promise<readonly UnansweredSettlement[]>;
  /** The acquirer's late answer that this batch was closed with, or is in doubt by. */
  late(partnerId: PartnerId, tid: string, batchId: string): Promise<LateSettlement | undefined>;
  /**
   * Keeps the late answer to a Settlement that was aborted. If its batch is as it was then, it is closed by it, and the
   * Settlement that runs, or the next one, reports it; otherwise it is in doubt. Undefined: it is no longer open.
   */
  keepLate(
    partnerId: PartnerId,
    tid: string,
    late: Omit<LateSettlement, "state"> & { readonly totals: BatchTotals },
  ): Promise<LateSettlement["state"] | undefined>;
  /** Drops the late answer by which a batch is in doubt: it stays open. False if none is. */
  resolveLate(partnerId: PartnerId, settlementId: TransactionId): Promise<boolean>;
  /** Transactions that are neither voided nor reversed: the settlementList. */
  counted(partnerId: PartnerId, batchId: string): Promise<readonly { reqId: string; refNo: string }[]>;
}

/** The acquirer accepted a Settlement that had been aborted. */
export interface LateSettlement {
  readonly settlementId: TransactionId;
  readonly batchId: string;
  readonly batchNo: string;
  readonly answer: Pick<AcquirerAnswer, "responseCode" | "refId" | "settlementDate" | "ownTotals">;
  readonly state: "closed" | "entered";
}

/** A Settlement that the acquirer may have settled. */
export type UnansweredSettlement = Pick<DueSettlement, "partnerId" | "id" | "tid" | "batchId" | "isUploaded"> & {
  /** The numbers of its own message after an upload. Undefined: there was none. */
  readonly numbers: (Pick<MessageNumbers, "atMs"> & { readonly traceNo: string }) | undefined;
  /** The totals as sent. Undefined: it runs, and its batch has them. */
  readonly totals: BatchTotals | undefined;
};

export interface MessageNumbers {
  readonly traceNos: readonly string[];
  readonly atMs: number;
  /** They were reserved before, and the messages may have been sent. */
  readonly repeat: boolean;
}

export interface DueSettlement {
  readonly partnerId: PartnerId;
  readonly id: TransactionId;
  readonly kind: "SETTLEMENT" | "BATCH_UPLOAD";
  readonly tid: string;
  readonly batchId: string;
  readonly step: "waiting" | "sending" | "uploading";
  readonly isUploaded: boolean;
  readonly uploadedUpTo: TransactionId | null;
  /** The number of tries at this step, this one included. */
  readonly tries: number;
}

export interface BatchEntry {
  readonly id: TransactionId;
  readonly chainId: ChainId;
  readonly command: ChargingCommand | "REFUND";
  readonly fields: Readonly<Record<string, string>>;
  readonly amountMinor: bigint;
  readonly currency: string;
  readonly voided: boolean;
}

export interface SettlerParts {
  readonly settlements: SettlementStore;
  readonly transactions: TransactionStore;
  readonly completer: Completer;
  readonly acquirers: Pick<Acquirers, "of">;
  readonly cards: CardVault;
  readonly log: Logger;
  readonly acquirerTimeoutMs: number;
}

const rowsMax = 20;
const graceMs = 10_000;
const quietPollMs = 100;
const entriesAtOnce = 100;
const noNumbers: MessageNumbers = { traceNos: [], atMs: 0, repeat: false };
/** From this try on the operator should know of an unanswered settlement. */
const unansweredAfterTries = 4;
/** An hour. */
const lateTriesMax = 64;

/**
 * Runs settlements: waits until the batch is quiet, sends its totals, uploads it if they differ, sends them again, and
 * closes or reopens the batch. Each step is stored in the database, so that any instance can continue.
 */
export class Settler extends DueWork<DueSettlement> {
  readonly #parts: SettlerParts;
  #stopping = false;

  constructor(parts: SettlerParts) {
    super("settlements", parts.log);
    this.#parts = parts;
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
    if (await this.#parts.settlements.isQuiet(due.partnerId, due.tid)) return this.#advance(due, { step: "sending" });
    await this.#parts.settlements.postpone(due, quietPollMs);
    setTimeout(() => this.wake(), quietPollMs).unref();
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
    const onLate = (late: AcquirerAnswer) => void this.#answeredLate(due, totals, late).catch(() => undefined);
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
    if (ended === undefined && settled) await this.#keep(due, totals, acquirerAnswer);
    return ended !== undefined;
  }

  /**
   * An answer that matches no open request: its process died, or it is very late.
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
      if (answer.mayAnswer(message)) answered.push(() => this.#answeredLate(sent, totals, answer));
    }
    const [only, another] = answered;
    if (only === undefined || another !== undefined) return false;
    await only();
    return true;
  }

  /**
   * After its time-out: it ends a Settlement that runs, and is kept for one that was aborted. The acquirer does not say
   * it again, so failures, such as an unavailable database, are retried.
   */
  async #answeredLate(due: SentSettlement, totals: BatchTotals, answer: AcquirerAnswer): Promise<void> {
    for (let tries = 1; ; tries += 1) {
      try {
        return await this.#takeLate(due, totals, answer);
      } catch (error) {
        this.#parts.log.error({ err: error, transaction: due.id }, "a late answer to a settlement could not be kept");
        if (this.#stopping || tries === lateTriesMax) throw error;
      }
      await sleep(backoffMs(tries), undefined, { ref: false });
    }
  }

  async #takeLate(due: SentSettlement, totals: BatchTotals, answer: AcquirerAnswer): Promise<void> {
    const { settlements, transactions } = this.#parts;
    const transaction = await transactions.find(due.partnerId, due.id);
    if (transaction?.state === "ERROR") return await this.#keep(due, totals, answer);
    const running = await settlements.find(due.partnerId, due.id);
    // Other totals need an upload: the answer to the repetition leads to it.
    if (transaction === undefined || running === undefined || answer.responseCode !== approvedCode) return;
    await this.#finish(running, transaction, totals, answer);
  }

  /** It was aborted: only the acquirer counts the batch as settled. */
  async #keep(
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

  #ask(
    acquirer: string,
    message: AcquirerMessage,
    onLateAnswer: (answer: AcquirerAnswer) => void = () => undefined,
  ): Promise<AcquirerAnswer> {
    const { acquirers, acquirerTimeoutMs: timeoutMs } = this.#parts;
    return acquirers.of(acquirer).ask(message, { timeoutMs, onLateAnswer });
  }
}

type SentSettlement = Pick<DueSettlement, "partnerId" | "id" | "tid" | "batchId">;

/** The first message with its totals. */
function settlementOf(
  { isUploaded }: Pick<DueSettlement, "isUploaded">,
  { facts: { fields } }: Transaction,
  totals: BatchTotals,
): SettlementMessage {
  const batchNo = fields["batchNo"] ?? "";
  return { command: "SETTLEMENT", ...headerOf(fields), batchNo, totals, afterUpload: isUploaded };
}

/** The totals as sent, and the acquirer's own, for the operator who investigates. */
function countedByEach(totals: BatchTotals, { ownTotals, ownFigures }: Partial<AcquirerAnswer>) {
  return {
    totals: inText(totals),
    ...(ownTotals !== undefined && { acquirerTotals: ownTotals }),
    ...(ownFigures !== undefined && { acquirerFigures: inText(ownFigures) }),
  };
}

/** JSON has no large integers: amounts are texts. */
function inText(totals: Partial<BatchTotals>): Readonly<Record<string, unknown>> {
  const texts = Object.entries(totals).map(([name, value]) => [name, typeof value === "bigint" ? `${value}` : value]);
  return Object.fromEntries(texts);
}

/** The upload of one transaction. Its header is that of its settlement; number, time and repeat flag are its own. */
function uploadOf(entry: BatchEntry, settlement: Transaction): BatchUploadMessage {
  const { id, command, fields, amountMinor, currency, voided } = entry;
  return {
    command: "BATCH_UPLOAD",
    ...headerOf(settlement.facts.fields),
    transactionId: id,
    batchNo: fields["batchNo"] ?? "",
    invoiceNo: fields["invoiceNo"] ?? "",
    amountMinor,
    currency,
    uploaded: referenceTo(command, fields),
    voided,
  };
}

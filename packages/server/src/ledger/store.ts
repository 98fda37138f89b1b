import type { Command } from "@paybell/contract";
import type { BatchTotals } from "../acquirer/acquirer.ts";
import type { OriginalState, Refusal } from "../commands/original.ts";
import type { ReportContent } from "../commands/report-difference.ts";
import type { TerminalState } from "../commands/terminal.ts";
import type { ChainId, LeaseId, PartnerId, TransactionId } from "../ids.ts";
import type { IpnFacts } from "../ipn/facts.ts";
import type { NewNotification } from "./notifier.ts";
import type { SystemFacts, Transaction } from "./transaction.ts";

/** The ledger's rows. Every method is durable when it resolves, and safe to repeat when it rejected. */
export interface TransactionStore {
  /**
   * Makes a command's INIT durable under its terminal's row lock, with the terminal's next numbers, before the
   * acquirer is asked. Concurrent calls share one commit.
   */
  begin(init: Init): Promise<Begun>;
  find(partnerId: PartnerId, id: TransactionId): Promise<Transaction | undefined>;
  findByReqId(partnerId: PartnerId, reqId: string): Promise<Transaction | undefined>;
  /** The transactions that follow from the same first one, in the order they came. */
  chain(transaction: Transaction): Promise<readonly Transaction[]>;
  /** The transactions that these external ids name, as far as they were reported. */
  findReported(partnerId: PartnerId, externalIds: readonly string[]): Promise<ReadonlyMap<string, ReportedOriginal>>;
  /** Takes over, under `leaseId`, commands still INIT whose own lease is gone: they are in doubt. */
  takeOver(leaseId: LeaseId, rowsMax: number): Promise<readonly Transaction[]>;
  /**
   * Remembers that a reqId was reversed before it arrived: a command that comes under it is refused. Resolves to the
   * transaction that did arrive, and undefined when none had.
   */
  reverseBeforeArrival(partnerId: PartnerId, reqId: string): Promise<TransactionId | undefined>;
}

/** The one door through which money, its IPN and the pending delivery become durable: all of them or none. */
export interface CompletionStore {
  /**
   * Completes a command. Applies only while the row is INIT under the same lease; otherwise another instance took the
   * command over and the answer is late.
   */
  complete(completion: Completion): Promise<Completed>;
  /** The same for a command that a switch already completed: the transaction comes into being with its result. */
  report(report: ReportedCompletion): Promise<Reported>;
  /** Makes the notification of a report that waited. False: somebody was faster, and nothing is changed. */
  release(release: Release): Promise<boolean>;
}

export type Completed = { readonly outcome: "completed"; readonly atMs: number } | { readonly outcome: "late" };

/** A command about to be processed. */
export interface Init {
  readonly partnerId: PartnerId;
  readonly id: TransactionId;
  readonly leaseId: LeaseId;
  readonly command: Command;
  readonly reqId: string;
  /** HMAC-SHA256 of the request's RFC 8785 form: what "the same body" means. */
  readonly bodyHash: Buffer;
  /** Whose row is locked, judged by `refusal`, and held by this command until it ends. */
  readonly originalId: TransactionId | null;
  readonly chainId: ChainId;
  /** Empty for the Reversal of what has not come yet: it stands on no terminal. */
  readonly tid: string;
  readonly mid: string;
  /** The one that the command brought; null: the registered one. */
  readonly callBackUrl: string | null;
  /** Whether a terminal that is not known yet comes into being with this command. */
  readonly openTerminals: boolean;
  /** The sandbox: what another partner merely used first is not refused. */
  readonly sharesTerminals: boolean;
  readonly takes: {
    /** A Reversal keeps its original's. */
    readonly traceNo: boolean;
    readonly invoiceNo: boolean;
    /** Whether it belongs to the terminal's open batch. */
    readonly batch: boolean;
    /** It closes the batch, or uploads it: a settlement stands from now on, for whichever instance goes on with it. */
    readonly settlement: "SETTLEMENT" | "BATCH_UPLOAD" | null;
  };
  readonly amountMinor: bigint | null;
  readonly currency: string | null;
  /** That of its original, or what its terminal's was taken to be: looked at again under the terminal's lock. */
  readonly acquirer: string;
  /** Of a Sale or PreAuth whose acquirer wants its card again. */
  readonly sealedCard: Buffer | null;
  /** Judges what stands under lock; undefined: the command may go on. A terminal that is not known yet is undefined. */
  refusal(terminal: TerminalState | undefined, original: OriginalState | undefined): Refusal | undefined;
  /** Makes the facts from what the terminal gives: its numbers, and the merchant registered for it. */
  facts(terminal: TerminalSequence): IpnFacts | SystemFacts;
}

/** What a terminal gives to one command. */
export interface TerminalSequence {
  /** Six digits, 000001 to 999999. */
  readonly traceNo: string;
  /** Six digits, or empty for a command that takes none. */
  readonly invoiceNo: string;
  /** Of the open batch; empty for a command that belongs to none. */
  readonly batchNo: string;
  /** Empty where nothing was registered. */
  readonly merchantId: string;
  readonly merchantName: string;
  readonly merchantAddress: string;
  readonly deviceId: string;
  readonly appName: string;
}

export type Begun =
  | { readonly outcome: "begun"; readonly facts: IpnFacts | SystemFacts; readonly createdAtMs: number }
  /** The reqId was used before: with the same body it is a repeat, with another one it is refused. */
  | { readonly outcome: "repeated"; readonly sameBody: boolean; readonly id: TransactionId }
  | { readonly outcome: "reversed_before_arrival" }
  /** The state forbids it; nothing was used up. */
  | { readonly outcome: "refused"; readonly refusal: Refusal }
  /** The terminal has another acquirer than it was taken to have; nothing was used up. */
  | { readonly outcome: "rerouted" }
  | { readonly outcome: "terminal_unknown" }
  | { readonly outcome: "terminal_taken" };

export interface Completion {
  readonly partnerId: PartnerId;
  readonly id: TransactionId;
  readonly leaseId: LeaseId;
  readonly state: "SUCCESS" | "ERROR";
  readonly facts: IpnFacts | SystemFacts;
  readonly notification: NewNotification | null;
  /** What becomes of the original that this command held. */
  readonly original: { readonly id: TransactionId; readonly becomes: "done" | "free" | "in_doubt" } | null;
  /** The money may have moved, and must not have: a Reversal is queued in the same transaction. */
  readonly reversal: { readonly tid: string; readonly requestedBy: TransactionId | null } | null;
  /** Of a settlement: what becomes of the terminal's batch. */
  readonly batch: BatchEnd | null;
}

/** What a settlement, or a Batch Upload, leaves behind on its terminal. */
export interface BatchEnd {
  readonly tid: string;
  readonly batchId: string;
  /** `open`: refused, and open again under the same number. `unchanged`: it was only uploaded. */
  readonly becomes: "closed" | "open" | "unchanged";
  readonly totals: BatchTotals;
}

export interface ReportedCompletion {
  readonly partnerId: PartnerId;
  readonly id: TransactionId;
  readonly externalId: string;
  readonly originalExternalId: string | null;
  readonly originalId: TransactionId | null;
  readonly chainId: ChainId;
  readonly callBackUrl: string | null;
  readonly command: Command;
  readonly state: "SUCCESS" | "ERROR";
  readonly reqId: string | null;
  /** Names the batch that the switch put it in, or settled by it; null: it named none. */
  readonly batchId: string | null;
  readonly facts: IpnFacts | SystemFacts;
  readonly notification: NewNotification | null;
  /** Its notification has its id from now on, and is made by `release`. */
  readonly waitsForOriginal?: boolean;
}

/** What is known in the end of a report that waited for its original. */
export interface Release {
  readonly partnerId: PartnerId;
  readonly id: TransactionId;
  readonly originalId: TransactionId | null;
  readonly chainId: ChainId;
  readonly batchId: string | null;
  readonly facts: IpnFacts;
  readonly notification: NewNotification;
}

export type Reported =
  | { readonly outcome: "accepted"; readonly id: TransactionId; readonly atMs: number }
  /** Its externalId was reported before: the same again, or something else. */
  | { readonly outcome: "known"; readonly id: TransactionId; readonly before: ReportContent }
  /** The id that the switch gave names another transaction. */
  | { readonly outcome: "id_taken" };

export interface ReportedOriginal {
  readonly id: TransactionId;
  readonly chainId: ChainId;
  readonly command: Command;
  /** Of the switch; null: it named none. */
  readonly batchId: string | null;
}

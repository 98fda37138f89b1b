import type { ChargingCommand } from "@paybell/contract";
import type { AcquirerAnswer, BatchTotals } from "../../acquirer/acquirer.ts";
import type { ChainId, PartnerId, TransactionId } from "../../ids.ts";

export interface SettlementStore {
  /** Claims due ones for `heldForMs`: no other instance continues them meanwhile, any may afterwards. */
  claimDue(rowsMax: number, heldForMs: number): Promise<readonly DueSettlement[]>;
  /** Undefined once it has ended. */
  find(partnerId: PartnerId, id: TransactionId): Promise<DueSettlement | undefined>;
  /** Sets when it is due. False, and nothing is changed, if the claim has ended: another instance continues it. */
  postpone(settlement: DueSettlement, delayMs: number): Promise<boolean>;
  /** Records that this entry was uploaded, and keeps the claim for `heldForMs`. The other numbers stay reserved. */
  acknowledge(from: DueSettlement, upTo: TransactionId, heldForMs: number): Promise<boolean>;
  /**
   * Records its next step, and keeps the claim for `heldForMs`. False as above, and of one that waits also until its
   * terminal is quiet, so that its batch can be counted: no command is in flight, which may still enter the batch, and no
   * Reversal is running, which may still remove one. A Batch Upload is such a command: between the messages of a settlement
   * it would make the host count twice. A Logon and the Settlement itself are not.
   */
  advance(from: DueSettlement, to: DueSettlement, heldForMs: number): Promise<boolean>;
  /**
   * Reserves up to `count` trace numbers of the terminal for the messages of this step, and stores them with it. Called
   * again at the same step it returns the same ones.
   */
  reserveTraceNumbers(settlement: DueSettlement, count: number): Promise<MessageNumbers>;
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

/** What identifies a Settlement whose totals were sent. */
export type SentSettlement = Pick<DueSettlement, "partnerId" | "id" | "tid" | "batchId">;

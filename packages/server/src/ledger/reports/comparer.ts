import type { SettlementEntry } from "@paybell/contract";
import type { Logger } from "pino";
import { type HeldTransaction, SettlementComparison } from "../../commands/reports/settlement-difference.ts";
import type { PartnerId, TransactionId } from "../../ids.ts";
import type { PartnerDirectory } from "../../partners/partner.ts";
import type { NewEvent } from "../../telemetry/events.ts";
import type { Metrics } from "../../telemetry/metrics.ts";
import { isAfter } from "../../time.ts";
import { DueWork } from "../due-work.ts";

/** A settlement that a switch reported, due to be compared with the ledger. */
export interface DueComparison {
  readonly partnerId: PartnerId;
  readonly id: TransactionId;
}

export interface ComparedSettlement {
  readonly externalId: string;
  /** The fields as reported. */
  readonly fields: Readonly<Record<string, string>>;
  /** The batch has more transactions than are read: the newest were. */
  readonly isCut: boolean;
}

/** Receives the transactions and entries of a batch as they are read. */
export interface ComparedInto {
  addTransaction(transaction: HeldTransaction): void;
  addEntry(entry: SettlementEntry): void;
  /** Whether one time is later than another, both in the forms that a switch may report. */
  isAfter(time: string, than: string): boolean;
}

export interface ComparisonStore {
  /** Claims due ones for `heldForMs`: no other instance compares them meanwhile, any may afterwards. */
  claimDue(rowsMax: number, heldForMs: number): Promise<readonly DueComparison[]>;
  /**
   * Reads the transactions of its batch and the entries of its list: at most `rowsMax` reported ones, as many of our
   * own, as many entries. Undefined if the settlement no longer exists.
   */
  read(due: DueComparison, into: ComparedInto, rowsMax: number): Promise<ComparedSettlement | undefined>;
  /**
   * Records its event and marks it as compared, in one transaction. False if another instance was faster: then nothing
   * is written.
   */
  end(due: DueComparison, event: NewEvent | undefined): Promise<boolean>;
}

export interface ComparerParts {
  readonly comparisons: ComparisonStore;
  readonly directory: Pick<PartnerDirectory, "find">;
  readonly metrics: Pick<Metrics, "settlementsCompared">;
  readonly log: Logger;
}

/** Twice the number of entries that a settlement may have. */
const rowsMax = 100_000;
/** Longer than reading so many rows takes. */
const heldForMs = 120_000;

/**
 * Compares settlements reported by a switch with the ledger, ten minutes after they arrived, so that late reports of
 * their batch are included. A difference is an event. Their IPNs do not wait for it.
 */
export class Comparer extends DueWork<DueComparison> {
  readonly #parts: ComparerParts;
  #isComparing = false;

  constructor(parts: ComparerParts) {
    super("comparisons", parts.log);
    this.#parts = parts;
  }

  /** One at a time: nobody waits for them, and each reads a whole batch. */
  protected async claim(): Promise<readonly DueComparison[]> {
    return this.#isComparing ? [] : await this.#parts.comparisons.claimDue(1, heldForMs);
  }

  protected async run(due: DueComparison): Promise<void> {
    this.#isComparing = true;
    try {
      await this.#compare(due);
    } finally {
      this.#isComparing = false;
    }
    this.wake();
  }

  async #compare(due: DueComparison): Promise<void> {
    const { comparisons, directory, metrics } = this.#parts;
    const comparison = new SettlementComparison();
    const { settlementTotal: total = "sum", timeZone = "UTC" } = (await directory.find(due.partnerId))?.settings ?? {};
    const into: ComparedInto = {
      addTransaction: (transaction) => comparison.addTransaction(transaction),
      addEntry: (entry) => comparison.addEntry(entry),
      isAfter: (time, than) => isAfter(time, than, timeZone),
    };
    const settlement = await comparisons.read(due, into, rowsMax);
    if (settlement === undefined) return;
    const { externalId, fields, isCut } = settlement;
    const difference = comparison.difference(fields, total);
    const { mid = "", tid = "", batchNo = "" } = fields;
    const event: NewEvent | undefined = difference && {
      kind: "settlement_differs",
      partnerId: due.partnerId,
      subjectId: due.id,
      detail: { externalId, mid, tid, batchNo, ...difference, ...(isCut && { transactionsReadMax: rowsMax }) },
    };
    const isFirst = await comparisons.end(due, event);
    if (isFirst) metrics.settlementsCompared.inc({ result: event === undefined ? "same" : "different" });
  }
}

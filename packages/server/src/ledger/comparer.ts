import type { SettlementEntry } from "@paybell/contract";
import type { Logger } from "pino";
import { type HeldTransaction, SettlementComparison } from "../commands/settlement-difference.ts";
import type { NewEvent } from "../events.ts";
import type { PartnerId, TransactionId } from "../ids.ts";
import { isAfter } from "../ipn/time.ts";
import type { Metrics } from "../metrics.ts";
import type { PartnerDirectory } from "../partners/partner.ts";
import { DueWork } from "./due-work.ts";

/** A settlement that a switch reported, to be compared with the ledger. */
export interface DueComparison {
  readonly partnerId: PartnerId;
  readonly id: TransactionId;
}

export interface ComparedSettlement {
  readonly externalId: string;
  /** As reported. */
  readonly fields: Readonly<Record<string, string>>;
  /** The batch has as many transactions as were read at most, or more: the newest were. */
  readonly isCut: boolean;
}

/** What is read of a batch, as it comes. */
export interface ComparedInto {
  hold(transaction: HeldTransaction): void;
  list(entry: SettlementEntry): void;
  /** Whether one time is later than another, each as a switch may report it. */
  isAfter(time: string, than: string): boolean;
}

/** The settlements that are to be compared, and what the ledger holds of their batches. */
export interface ComparisonStore {
  /** Takes due ones for `heldForMs`: nobody else compares them meanwhile, everybody may afterwards. */
  claimDue(rowsMax: number, heldForMs: number): Promise<readonly DueComparison[]>;
  /**
   * Reads what its batch holds and what it lists, one after the other: at most `rowsMax` that were reported, as many of
   * our own, as many entries. Undefined when it is gone.
   */
  read(due: DueComparison, into: ComparedInto, rowsMax: number): Promise<ComparedSettlement | undefined>;
  /**
   * It was compared: its event and that it is due no more become durable together. False when somebody was faster: then
   * nothing is written.
   */
  end(due: DueComparison, event: NewEvent | undefined): Promise<boolean>;
}

export interface ComparerParts {
  readonly comparisons: ComparisonStore;
  readonly directory: Pick<PartnerDirectory, "find">;
  readonly metrics: Pick<Metrics, "settlementsCompared">;
  readonly log: Logger;
}

/** Twice what a settlement may list. */
const rowsMax = 100_000;
/** Longer than it takes to read so many. */
const heldForMs = 120_000;
const lookEveryMs = 2_000;

/**
 * Compares settlements that a switch reported with what the ledger holds of their batches, ten minutes after they came:
 * what was reported a little later is there by then. A difference is an event. Their IPNs wait for none of it.
 */
export class Comparer {
  readonly #parts: ComparerParts;
  readonly #work: DueWork<DueComparison>;
  #isComparing = false;

  constructor(parts: ComparerParts) {
    this.#parts = parts;
    this.#work = new DueWork({
      name: "comparisons",
      log: parts.log,
      everyMs: lookEveryMs,
      // One after the other: nobody waits for them, and each reads a whole batch.
      claim: async () => (this.#isComparing ? [] : parts.comparisons.claimDue(1, heldForMs)),
      run: (due) => this.#compareAlone(due),
    });
  }

  start(): void {
    this.#work.start();
  }

  /** Looks now. */
  wake(): void {
    this.#work.wake();
  }

  stop(): Promise<void> {
    return this.#work.stop();
  }

  async #compareAlone(due: DueComparison): Promise<void> {
    this.#isComparing = true;
    try {
      await this.#compare(due);
    } finally {
      this.#isComparing = false;
    }
    this.#work.wake();
  }

  async #compare(due: DueComparison): Promise<void> {
    const { comparisons, directory, metrics } = this.#parts;
    const comparison = new SettlementComparison();
    const { settlementTotal: total = "sum", timeZone = "UTC" } = (await directory.find(due.partnerId))?.settings ?? {};
    const into: ComparedInto = {
      hold: (transaction) => comparison.hold(transaction),
      list: (entry) => comparison.list(entry),
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

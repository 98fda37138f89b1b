import { type Command, isCharging } from "@paybell/contract";

/** A transaction of a batch, with the fields for its totals. */
export interface BatchRow {
  readonly command: Command;
  readonly state: "INIT" | "SUCCESS" | "ERROR";
  /** In the smallest unit of the batch's currency. */
  readonly amountMinor: bigint;
  /** A Void of it succeeded. */
  readonly voided: boolean;
  /** Its Reversal is done; a parked one reversed nothing. */
  readonly reversed: boolean;
}

/** The totals of a batch. */
export interface SettlementTotals {
  /** ISO 4217; empty for an empty batch. */
  readonly currency: string;
  readonly saleQuantity: number;
  readonly saleTotalMinor: bigint;
  readonly voidQuantity: number;
  readonly voidTotalMinor: bigint;
}

/**
 * Whether it is counted in the totals: a Sale or PreAuth-Complete that succeeded and was not reversed, voided or not.
 */
function counts({ command, state, reversed }: BatchRow): boolean {
  return isCharging(command) && state === "SUCCESS" && !reversed;
}

/** Whether it is neither voided nor reversed, and so in settlementList. */
export function isCounted(row: BatchRow): boolean {
  return counts(row) && !row.voided;
}

/** The totals of a batch's transactions, exactly: voided ones count on both sides, Voids not by themselves. */
export function settlementTotals(rows: Iterable<BatchRow>, currency: string): SettlementTotals {
  const totals = { saleQuantity: 0, saleTotalMinor: 0n, voidQuantity: 0, voidTotalMinor: 0n };
  for (const row of rows) {
    if (!counts(row)) continue;
    totals.saleQuantity += 1;
    totals.saleTotalMinor += row.amountMinor;
    if (!row.voided) continue;
    totals.voidQuantity += 1;
    totals.voidTotalMinor += row.amountMinor;
  }
  return { currency: totals.saleQuantity === 0 ? "" : currency, ...totals };
}

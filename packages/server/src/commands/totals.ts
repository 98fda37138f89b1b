import type { Command } from "@paybell/contract";

/** A transaction of a batch, as far as its totals ask. */
export interface BatchRow {
  readonly command: Command;
  readonly state: "INIT" | "SUCCESS" | "ERROR";
  /** In the smallest unit of the batch's currency. */
  readonly amountMinor: bigint;
  /** A Void of it succeeded. */
  readonly voided: boolean;
  /** Its Reversal is done; a parked one undid nothing. */
  readonly reversed: boolean;
}

/** What a batch comes to. */
export interface SettlementTotals {
  /** ISO 4217; empty for an empty batch. */
  readonly currency: string;
  readonly saleQuantity: number;
  readonly saleTotalMinor: bigint;
  readonly voidQuantity: number;
  readonly voidTotalMinor: bigint;
}

/** Whether it counts at all: a Sale or PreAuth-Complete that succeeded and was not reversed, voided or not. */
function counts({ command, state, reversed }: BatchRow): boolean {
  return (command === "SALE" || command === "PREAUTH_COMPLETE") && state === "SUCCESS" && !reversed;
}

/** Whether it stands, and so is in settlementList. */
export function isCounted(row: BatchRow): boolean {
  return counts(row) && !row.voided;
}

/** The totals of a batch's transactions, exactly: voided ones are counted on both sides, Voids not by themselves. */
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

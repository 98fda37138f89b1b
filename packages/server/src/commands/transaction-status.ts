import type { Command } from "@paybell/contract";

/** A transaction that another command refers to, as the ledger holds it under lock. */
export interface OriginalState {
  readonly id: string;
  readonly command: Command;
  readonly state: "INIT" | "SUCCESS" | "ERROR";
  /** Who processed it: this service, or the operator's switch, which only reported it. */
  readonly origin: "command" | "switch";
  /** The Void, Complete or partner's Reversal that holds or ended it; null again once one of them failed. */
  readonly successor: {
    readonly command: "VOID" | "PREAUTH_COMPLETE" | "REVERSAL";
    readonly state: "in_flight" | "in_doubt" | "done";
    /** Of the successor's own Reversal. */
    readonly reversal?: "pending" | "done" | "parked" | null;
  } | null;
  /** Of its own Reversal. */
  readonly reversal: "pending" | "done" | "parked" | null;
  /** Of the batch it belongs to; a PreAuth is in none. */
  readonly batch: "open" | "closing" | "closed" | "none";
  readonly amountMinor: bigint;
  /** What its Refunds gave back, or may still: those that did not fail. */
  readonly refundedMinor: bigint;
  /** ISO 4217. */
  readonly currency: string;
  readonly createdAtMs: number;
}

/** What became of a transaction, as far as it decides which command may still refer to it. */
export const transactionStatuses = [
  "IN_FLIGHT",
  "FAILED",
  "STANDS",
  "HELD",
  "IN_DOUBT",
  "VOIDED",
  "COMPLETED",
  "REVERSED",
  "SETTLING",
  "SETTLED",
] as const;
export type TransactionStatus = (typeof transactionStatuses)[number];

const ended = { VOID: "VOIDED", PREAUTH_COMPLETE: "COMPLETED", REVERSAL: "REVERSED" } as const;

/** What is final comes first: a voided transaction stays voided while its batch is settled. */
export function transactionStatusOf(original: OriginalState): TransactionStatus {
  const { state, successor, reversal } = original;
  const reversing = reversal === "pending" || reversal === "parked";
  if (state === "ERROR") return reversing ? "IN_DOUBT" : "FAILED";
  if (reversal === "done") return "REVERSED";
  if (successor?.state === "done") return ended[successor.command];
  if (reversing || successor?.state === "in_doubt") return "IN_DOUBT";
  if (successor !== null) return "HELD";
  return unheld(original);
}

function unheld({ command, state, batch }: OriginalState): TransactionStatus {
  // A PreAuth belongs to no batch. What should be in one and is not cannot be proved unsettled.
  const inNone = command === "PREAUTH";
  if (!inNone && batch !== "open" && batch !== "closing") return "SETTLED";
  if (state === "INIT") return "IN_FLIGHT";
  return !inNone && batch === "closing" ? "SETTLING" : "STANDS";
}

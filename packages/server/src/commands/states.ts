import { type Command, chargingCommands, voidableCommands } from "@paybell/contract";

/** The states of a Reversal. Those of the row `reversals` are the same in capitals. */
export const reversalStates = ["pending", "done", "parked", "stands"] as const;
export type ReversalState = (typeof reversalStates)[number];

/** A transaction that another command refers to, in the ledger under lock. */
export interface OriginalState {
  readonly id: string;
  readonly command: Command;
  readonly state: "INIT" | "SUCCESS" | "ERROR";
  /** This service processed it, or the operator's switch, which only reported it. */
  readonly origin: "command" | "switch";
  /** The Void, Complete or partner's Reversal that holds or ended it; null again once one of them failed. */
  readonly successor: {
    readonly command: "VOID" | "PREAUTH_COMPLETE" | "REVERSAL";
    readonly state: "in_flight" | "in_doubt" | "done";
    /** The state of the successor's own Reversal. */
    readonly reversal?: ReversalState | null;
  } | null;
  /** The state of its own Reversal. One that stands is SUCCESS, whatever its partner was told. */
  readonly reversal: ReversalState | null;
  /** The state of its batch; a PreAuth has none. */
  readonly batch: "open" | "closing" | "closed" | "none";
  readonly amountMinor: bigint;
  /** The sum of its Refunds that did not fail. */
  readonly refundedMinor: bigint;
  /** ISO 4217. */
  readonly currency: string;
  readonly createdAtMs: number;
}

/** The status of a transaction, as far as it determines which command may refer to it. */
export const transactionStatuses = [
  "IN_FLIGHT",
  "FAILED",
  "APPROVED",
  "RESERVED",
  "IN_DOUBT",
  "VOIDED",
  "COMPLETED",
  "REVERSED",
  "SETTLING",
  "SETTLED",
] as const;
export type TransactionStatus = (typeof transactionStatuses)[number];

const ended = { VOID: "VOIDED", PREAUTH_COMPLETE: "COMPLETED", REVERSAL: "REVERSED" } as const;

/** Final states come first: a voided transaction stays voided while its batch is settled. */
export function transactionStatusOf(original: OriginalState): TransactionStatus {
  const { state, successor, reversal } = original;
  const reversing = reversal === "pending" || reversal === "parked";
  if (state === "ERROR") return reversing ? "IN_DOUBT" : "FAILED";
  if (reversal === "done") return "REVERSED";
  if (reversing || successor?.state === "in_doubt") return "IN_DOUBT";
  if (successor?.state === "done") return ended[successor.command];
  if (successor !== null) return "RESERVED";
  return unheld(original);
}

function unheld({ command, state, batch }: OriginalState): TransactionStatus {
  // A PreAuth belongs to no batch. Another transaction without a batch cannot be proved unsettled.
  const inNone = command === "PREAUTH";
  if (!inNone && batch !== "open" && batch !== "closing") return "SETTLED";
  if (state === "INIT") return "IN_FLIGHT";
  return !inNone && batch === "closing" ? "SETTLING" : "APPROVED";
}

/** Conditions of the cases below. */
export type Guard = "within_days" | "within_amount" | "within_refundable" | "being_reversed" | "never_refused";

export type ReferringCommand = "VOID" | "PREAUTH_COMPLETE" | "REVERSAL" | "REFUND";

export interface Reference {
  /** The commands it may refer to, unless a switch reported them. */
  readonly of: readonly Command[];
  readonly cases: readonly {
    readonly from: TransactionStatus;
    readonly to: TransactionStatus;
    readonly guards: readonly Guard[];
  }[];
}

/** `originalRefusal` (original.ts) accepts a command exactly in these cases. */
export const references: Readonly<Record<ReferringCommand, Reference>> = {
  VOID: { of: voidableCommands, cases: [{ from: "APPROVED", to: "RESERVED", guards: [] }] },
  PREAUTH_COMPLETE: {
    of: ["PREAUTH"],
    cases: [{ from: "APPROVED", to: "RESERVED", guards: ["within_days", "within_amount"] }],
  },
  REVERSAL: {
    of: voidableCommands,
    cases: [
      { from: "APPROVED", to: "RESERVED", guards: ["never_refused"] },
      { from: "IN_FLIGHT", to: "RESERVED", guards: [] },
      { from: "IN_DOUBT", to: "IN_DOUBT", guards: ["being_reversed"] },
    ],
  },
  // There may be several, so none holds it.
  REFUND: { of: chargingCommands, cases: [{ from: "SETTLED", to: "SETTLED", guards: ["within_refundable"] }] },
};

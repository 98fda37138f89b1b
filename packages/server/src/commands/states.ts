import { type Command, chargingCommands, voidableCommands } from "@paybell/contract";
import type { TransactionStatus } from "./transaction-status.ts";

/** One transition of a state machine. Transitions that are in no table do not happen. */
export interface Transition<State extends string> {
  /** null: the initial transition. */
  readonly from: State | null;
  readonly event: string;
  readonly to: State;
  /** A condition; absent if there is none. */
  readonly guard?: string;
}

/** `status` of section 3, as in the IPN. */
export const transactionTransitions: readonly Transition<"INIT" | "SUCCESS" | "ERROR">[] = [
  { from: null, event: "accepted", to: "INIT", guard: "terminal and original allow it, under their row locks" },
  { from: "INIT", event: "answered 00", to: "SUCCESS", guard: "written under the lease that asked" },
  { from: "INIT", event: "answered otherwise", to: "ERROR", guard: "reversed if the code is an approval" },
  {
    from: "INIT",
    event: "not answered in time, 68",
    to: "ERROR",
    guard: "a Reversal is queued if the command may move money",
  },
  { from: "INIT", event: "never sent, 91", to: "ERROR" },
  {
    from: "INIT",
    event: "its instance is gone, 96",
    to: "ERROR",
    guard: "a Reversal is queued if the command may move money",
  },
  { from: null, event: "reported by a switch as a success", to: "SUCCESS" },
  { from: null, event: "reported by a switch as an error", to: "ERROR" },
];

export const batchTransitions: readonly Transition<"OPEN" | "CLOSING" | "CLOSED">[] = [
  { from: null, event: "the terminal is new, or its last batch CLOSED", to: "OPEN" },
  { from: "OPEN", event: "SETTLEMENT begins", to: "CLOSING", guard: "under the terminal's row lock" },
  {
    from: "CLOSING",
    event: "accepted, 00",
    to: "CLOSED",
    guard: "when its totals were counted, nothing of it was in flight and no Reversal PENDING",
  },
  {
    from: "CLOSING",
    event: "totals differ, 95",
    to: "CLOSING",
    guard: "the first time only: the batch is uploaded, then the totals are sent again",
  },
  { from: "CLOSING", event: "not answered", to: "CLOSING", guard: "the same request is repeated" },
  { from: "CLOSING", event: "refused, or totals differ again", to: "OPEN", guard: "under the same batchNo" },
];

export const reversalTransitions: readonly Transition<"PENDING" | "DONE" | "PARKED">[] = [
  { from: null, event: "an outcome must be undone, or a partner reverses", to: "PENDING" },
  {
    from: "PENDING",
    event: "not answered, or answered 09, 19, 68, 90, 91, 96",
    to: "PENDING",
    guard: "asked again, across restarts",
  },
  {
    from: "PENDING",
    event: "answered 25, which is not final",
    to: "PENDING",
    guard: "the original may still be booked, or another host got it, and this is not the eighth try yet",
  },
  { from: "PENDING", event: "answered 00", to: "DONE" },
  {
    from: "PENDING",
    event: "answered 25, which is final",
    to: "DONE",
    guard: "sent after the original's time-out and margin, and answered by the host that got it",
  },
  { from: "PENDING", event: "answered otherwise", to: "PARKED", guard: "the operator is alerted" },
  { from: "PARKED", event: "the operator retries it", to: "PENDING" },
  { from: "DONE", event: "the operator retries it, with a reason", to: "PENDING" },
  { from: "PARKED", event: "the operator resolves it, with a reason", to: "DONE" },
  { from: "DONE", event: "the original is approved late", to: "PENDING" },
  { from: "PARKED", event: "the original is approved late", to: "PENDING" },
];

export const guards = {
  processed_here: "no switch reported it",
  within_days: "at most PAYBELL_PREAUTH_DAYS old",
  within_amount: "at most the authorised amount",
  within_refundable: "all its Refunds together are at most its amount",
  being_reversed: "it did not succeed, its own Reversal is PENDING, and no other REVERSAL waits for that",
} as const;
export type Guard = keyof typeof guards;

/** A command that refers to a transaction holds it. */
export interface Beginning {
  readonly from: TransactionStatus;
  readonly command: "VOID" | "PREAUTH_COMPLETE" | "REVERSAL" | "REFUND";
  /** The transactions it may refer to. */
  readonly of: readonly Command[];
  readonly to: TransactionStatus;
  readonly guards: readonly Guard[];
}

/** Every case in which a Void, PreAuth-Complete, Refund or partner's Reversal is accepted. */
export const beginnings: readonly Beginning[] = [
  { from: "APPROVED", command: "VOID", of: voidableCommands, to: "RESERVED", guards: ["processed_here"] },
  {
    from: "APPROVED",
    command: "PREAUTH_COMPLETE",
    of: ["PREAUTH"],
    to: "RESERVED",
    guards: ["processed_here", "within_days", "within_amount"],
  },
  { from: "APPROVED", command: "REVERSAL", of: voidableCommands, to: "RESERVED", guards: ["processed_here"] },
  { from: "IN_FLIGHT", command: "REVERSAL", of: voidableCommands, to: "RESERVED", guards: ["processed_here"] },
  {
    from: "IN_DOUBT",
    command: "REVERSAL",
    of: voidableCommands,
    to: "IN_DOUBT",
    guards: ["processed_here", "being_reversed"],
  },
  // There may be several, so none holds it.
  {
    from: "SETTLED",
    command: "REFUND",
    of: chargingCommands,
    to: "SETTLED",
    guards: ["processed_here", "within_refundable"],
  },
];

const open = "a PreAuth, or its batch is OPEN";
const closing = "its batch is CLOSING";

/** The other transitions of a transaction that others may refer to: a Sale, PreAuth or PreAuth-Complete. */
export const statusTransitions: readonly Transition<TransactionStatus>[] = [
  { from: null, event: "INIT", to: "IN_FLIGHT" },
  { from: "IN_FLIGHT", event: "answered 00", to: "APPROVED", guard: open },
  { from: "IN_FLIGHT", event: "answered 00", to: "SETTLING", guard: closing },
  { from: "IN_FLIGHT", event: "declined, or never sent", to: "FAILED" },
  { from: "IN_FLIGHT", event: "its own Reversal is queued", to: "IN_DOUBT" },
  { from: "RESERVED", event: "its Void succeeds", to: "VOIDED" },
  { from: "RESERVED", event: "its PreAuth-Complete succeeds", to: "COMPLETED" },
  { from: "RESERVED", event: "its Void or PreAuth-Complete fails", to: "APPROVED", guard: open },
  { from: "RESERVED", event: "its Void or PreAuth-Complete fails", to: "SETTLING", guard: closing },
  { from: "RESERVED", event: "a Reversal of its Void or PreAuth-Complete is queued", to: "IN_DOUBT" },
  { from: "RESERVED", event: "its own Reversal is queued", to: "IN_DOUBT" },
  {
    from: "RESERVED",
    event: "declined, or never sent",
    to: "FAILED",
    guard: "its partner began a Reversal while it was in flight",
  },
  { from: "IN_DOUBT", event: "its own Reversal is DONE", to: "REVERSED", guard: "it had succeeded" },
  { from: "IN_DOUBT", event: "its own Reversal is DONE", to: "FAILED", guard: "it had not succeeded" },
  { from: "IN_DOUBT", event: "the Reversal of its Void or PreAuth-Complete is DONE", to: "APPROVED", guard: open },
  { from: "IN_DOUBT", event: "the Reversal of its Void or PreAuth-Complete is DONE", to: "SETTLING", guard: closing },
  { from: "APPROVED", event: "SETTLEMENT begins", to: "SETTLING", guard: "in that batch" },
  { from: "SETTLING", event: "the Settlement is refused", to: "APPROVED" },
  { from: "SETTLING", event: "the Settlement is accepted", to: "SETTLED" },
];

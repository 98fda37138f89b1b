import type { ReversalState, TransactionStatus } from "./states.ts";

/**
 * One transition of a state machine. The tables of transitions are a picture for docs/internals/states.md: the pure
 * rules (outcome.ts, reversal.ts, terminal.ts) and the statements of the store make them happen, and states.test.ts
 * holds the tables against the rules. What may refer to a transaction is no picture: `references` (states.ts) decides it.
 */
export interface Transition<State extends string> {
  /** null: the initial transition. */
  readonly from: State | null;
  readonly event: string;
  readonly to: State;
  /** A condition; absent if there is none. */
  readonly guard?: string;
}

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

export const reversalTransitions: readonly Transition<Uppercase<ReversalState>>[] = [
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
    event: "answered 94, a duplicate, to a repeat",
    to: "PENDING",
    guard: "the original may still be booked",
  },
  {
    from: "PENDING",
    event: "answered 94 to a repeat, once the original can no longer be booked",
    to: "DONE",
    guard: "no try was answered 25; otherwise it is PARKED",
  },
  {
    from: "PENDING",
    event: "answered 25, which is final",
    to: "DONE",
    guard: "sent after the original's time-out and margin, and answered by the host that got it",
  },
  { from: "PENDING", event: "answered otherwise", to: "PARKED", guard: "the operator is alerted" },
  { from: "PARKED", event: "the operator retries it", to: "PENDING" },
  { from: "DONE", event: "the operator retries it, with a reason", to: "PENDING" },
  {
    from: "PARKED",
    event: "the operator resolves it, with a reason",
    to: "DONE",
    guard: "the acquirer confirmed that nothing is charged",
  },
  {
    from: "PARKED",
    event: "the operator lets its transaction stand, with a reason",
    to: "STANDS",
    guard: "the acquirer refuses for good to undo it. Final: neither a late approval nor its partner reverses it again",
  },
  { from: "DONE", event: "the original is approved late", to: "PENDING" },
  {
    from: "PARKED",
    event: "the original is approved late",
    to: "PENDING",
    guard: "it had not succeeded, or had been reversed before",
  },
];

const open = "a PreAuth, or its batch is OPEN";
const closing = "its batch is CLOSING";
const closed = "its batch is CLOSED";

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
  { from: "IN_DOUBT", event: "the Reversal of its Void or PreAuth-Complete is DONE", to: "SETTLED", guard: closed },
  { from: "IN_DOUBT", event: "its own Reversal says that it STANDS", to: "APPROVED", guard: open },
  { from: "IN_DOUBT", event: "its own Reversal says that it STANDS", to: "SETTLING", guard: closing },
  { from: "IN_DOUBT", event: "its own Reversal says that it STANDS", to: "SETTLED", guard: closed },
  { from: "IN_DOUBT", event: "the Reversal of its Void says that this STANDS", to: "VOIDED" },
  { from: "IN_DOUBT", event: "the Reversal of its PreAuth-Complete says that this STANDS", to: "COMPLETED" },
  { from: "APPROVED", event: "SETTLEMENT begins", to: "SETTLING", guard: "in that batch" },
  { from: "SETTLING", event: "the Settlement is refused", to: "APPROVED" },
  { from: "SETTLING", event: "the Settlement is accepted", to: "SETTLED" },
];

import { type ErrorCode, ServiceError } from "../errors.ts";
import {
  type Guard,
  type OriginalState,
  type ReferringCommand,
  references,
  type TransactionStatus,
  transactionStatusOf,
} from "./states.ts";

/** The codes by which a state forbids a command: the document of the API has them all. */
export const refusalCodes = [
  "terminal_mid_mismatch",
  "other_acquirer",
  "batch_currency",
  "owned_by_switch",
  "not_voidable",
  "not_completable",
  "not_reversible",
  "in_flight",
  "in_doubt",
  "not_successful",
  "already_voided",
  "already_completed",
  "already_reversed",
  "batch_settled",
  "preauth_expired",
  "amount_above_authorised",
  "not_refundable",
  "not_settled",
  "amount_above_refundable",
  "settlement_in_progress",
  "settlement_in_doubt",
] as const satisfies readonly ErrorCode[];

/** Why the state forbids a command, before anything of it is accepted. */
export interface Refusal {
  readonly code: (typeof refusalCodes)[number];
  /** The state that forbids it, and what to do instead. */
  readonly message: string;
  /** If the state passes by itself. */
  readonly retryAfterS?: number;
}

export function refusalError({ code, message, retryAfterS }: Refusal): ServiceError {
  return new ServiceError(code, message, retryAfterS === undefined ? {} : { retryAfterS });
}

/** A settlement takes one exchange with the acquirer, or a few; retrying sooner is pointless. */
const settlementRetryAfterS = 5;

export function settlementInProgress(what: string): Refusal {
  return {
    code: "settlement_in_progress",
    message: `${what} is being settled: repeat the same request once the settlement has ended.`,
    retryAfterS: settlementRetryAfterS,
  };
}

const dayMs = 86_400_000;

/** What a command asks of the transaction it refers to. */
export interface OriginalAsks {
  readonly command: ReferringCommand;
  /** The amount to complete or refund, in the smallest unit of the original's currency. */
  readonly amountMinor: bigint;
  readonly nowMs: number;
  readonly preAuthDays: number;
}

type Verb = "void" | "complete" | "reverse" | "refund";

const verbOf: Readonly<Record<ReferringCommand, Verb>> = {
  VOID: "void",
  PREAUTH_COMPLETE: "complete",
  REVERSAL: "reverse",
  REFUND: "refund",
};
const wrongCommandCodes = {
  void: "not_voidable",
  complete: "not_completable",
  reverse: "not_reversible",
  refund: "not_refundable",
} as const;

/** Why a command cannot begin on this transaction now; undefined if it can: exactly in the cases of `references`. */
export function originalRefusal(original: OriginalState, asks: OriginalAsks): Refusal | undefined {
  const { id, command, origin } = original;
  const verb = verbOf[asks.command];
  if (origin === "switch") return ownedBySwitch(id, verb);
  const { of, cases } = references[asks.command];
  if (!of.includes(command)) {
    const named = new Intl.ListFormat("en-GB", { type: "disjunction" }).format(of);
    return { code: wrongCommandCodes[verb], message: `${id} is a ${command}: ${verb} a ${named}.` };
  }
  const status = transactionStatusOf(original);
  const beginning = cases.find(({ from }) => from === status);
  if (beginning === undefined) return statusRefusal(original, status, verb);
  for (const guard of beginning.guards) {
    const refusal = guardRefusals[guard](original, asks);
    if (refusal !== undefined) return refusal;
  }
  return undefined;
}

const guardRefusals: Readonly<Record<Guard, (original: OriginalState, asks: OriginalAsks) => Refusal | undefined>> = {
  within_days: ({ id, createdAtMs }, { nowMs, preAuthDays }) =>
    nowMs - createdAtMs <= preAuthDays * dayMs
      ? undefined
      : {
          code: "preauth_expired",
          message: `The PreAuth ${id} is older than ${preAuthDays} days: void it, and send a new SALE or PREAUTH.`,
        },
  within_amount: ({ id, amountMinor: authorised }, { amountMinor }) =>
    amountMinor <= authorised
      ? undefined
      : {
          code: "amount_above_authorised",
          message: `The PreAuth ${id} was authorised for less: complete at most its amount, and charge the rest with a SALE.`,
        },
  within_refundable: ({ id, amountMinor: charged, refundedMinor }, { amountMinor }) =>
    refundedMinor + amountMinor <= charged
      ? undefined
      : {
          code: "amount_above_refundable",
          message: `Less than that is left of ${id}: its Refunds come to its amount at most.`,
        },
  being_reversed: (original, { command }) =>
    isBeingReversed(original) ? undefined : inDoubt(original, verbOf[command]),
  never_refused: ({ id, reversal }) =>
    reversal === "stands"
      ? {
          code: "not_reversible",
          message: `The acquirer refuses for good to reverse ${id}: void it, or refund it later.`,
        }
      : undefined,
};

/** It ended without an answer, and no REVERSAL waits for its own Reversal yet. */
function isBeingReversed({ state, reversal, successor }: OriginalState): boolean {
  return state === "ERROR" && reversal === "pending" && successor === null;
}

function ownedBySwitch(id: string, verb: Verb): Refusal {
  return {
    code: "owned_by_switch",
    message: `${id} was reported by a switch: ${verb} it there, and have the switch report that.`,
  };
}

function statusRefusal(original: OriginalState, status: TransactionStatus, verb: Verb): Refusal {
  const { id } = original;
  switch (status) {
    case "APPROVED":
      return { code: "not_settled", message: `The batch of ${id} is not settled yet: void it while that is so.` };
    case "IN_FLIGHT":
      return {
        code: "in_flight",
        message: `${id} has no outcome yet: wait for it, then ${verb} it, or reverse it now.`,
      };
    case "RESERVED":
      return {
        code: "in_flight",
        message: `A ${original.successor?.command} of ${id} has no outcome yet: wait for it, ${verb} only if it fails.`,
      };
    case "IN_DOUBT":
      return inDoubt(original, verb);
    case "FAILED":
      return { code: "not_successful", message: `${id} was not successful: there is nothing to ${verb}.` };
    case "VOIDED":
      return { code: "already_voided", message: `${id} was voided: there is nothing left to ${verb}.` };
    case "COMPLETED":
      return {
        code: "already_completed",
        message: `The PreAuth ${id} was completed, for good: void its PREAUTH_COMPLETE while that is not settled.`,
      };
    case "REVERSED":
      return { code: "already_reversed", message: `${id} was reversed: there is nothing left to ${verb}.` };
    case "SETTLING":
      return settlementInProgress(`The batch of ${id}`);
    case "SETTLED":
      return {
        code: "batch_settled",
        message: `The batch of ${id} is settled, so nothing can ${verb} it: refund it, where that was agreed on.`,
      };
  }
}

function inDoubt({ id, reversal, successor }: OriginalState, verb: Verb): Refusal {
  const isParked = reversal === "parked" || (reversal === null && successor?.reversal === "parked");
  const what = reversal === null ? `the ${successor?.command} of ${id}` : id;
  if (isParked) {
    return {
      code: "in_doubt",
      message:
        `The Reversal of ${what} is parked: the acquirer refused it. Ask again once the operator has retried it, or ` +
        "resolved it with the acquirer.",
    };
  }
  const unanswered = reversal === null ? `the unanswered ${successor?.command} of ${id}` : id;
  return {
    code: "in_doubt",
    message:
      `The Reversal of ${unanswered} is not answered yet: wait until it is, and ${verb} only if the state allows ` +
      "it.",
  };
}

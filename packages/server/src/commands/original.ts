import { type Command, chargingCommands, isCharging, isVoidable, voidableCommands } from "@paybell/contract";
import { type Refusal, settlementInProgress } from "./refusal.ts";
import { type OriginalState, type TransactionStatus, transactionStatusOf } from "./transaction-status.ts";

export { type Refusal, refusalError } from "./refusal.ts";
export type { OriginalState } from "./transaction-status.ts";

const dayMs = 86_400_000;

/**
 * Why a transaction cannot be voided now; undefined if it can. A PreAuth can be voided at any age: that releases a
 * hold.
 */
export function voidRefusal(original: OriginalState): Refusal | undefined {
  const { id, command } = original;
  if (original.origin === "switch") return ownedBySwitch(id, "void");
  if (!isVoidable(command)) {
    return { code: "not_voidable", message: `${id} is a ${command}: void a ${anyOf(voidableCommands)}.` };
  }
  const status = transactionStatusOf(original);
  return status === "APPROVED" ? undefined : statusRefusal(original, status, "void");
}

/**
 * Why a transaction cannot be completed now; undefined if it can. `amountMinor` is the amount to charge, in the
 * smallest unit of the original's currency.
 */
export function completeRefusal(
  original: OriginalState,
  amountMinor: bigint,
  nowMs: number,
  preAuthDays: number,
): Refusal | undefined {
  const { id, command } = original;
  if (original.origin === "switch") return ownedBySwitch(id, "complete");
  if (command !== "PREAUTH") {
    return { code: "not_completable", message: `${id} is a ${command}: complete a PREAUTH.` };
  }
  const status = transactionStatusOf(original);
  if (status !== "APPROVED") return statusRefusal(original, status, "complete");
  const expired = expiry(original, nowMs, preAuthDays);
  if (expired !== undefined || amountMinor <= original.amountMinor) return expired;
  return {
    code: "amount_above_authorised",
    message: `The PreAuth ${id} was authorised for less: complete at most its amount, and charge the rest with a SALE.`,
  };
}

/**
 * Why a transaction cannot be reversed by its partner; undefined if it can: in flight, even while its batch waits to be
 * settled, or successful and neither used nor settled. One that did not succeed and is being reversed already can, too:
 * the partner's REVERSAL waits for that.
 */
export function reversalRefusal(original: OriginalState): Refusal | undefined {
  const { id, command } = original;
  if (original.origin === "switch") return ownedBySwitch(id, "reverse");
  if (!isVoidable(command)) {
    return { code: "not_reversible", message: `${id} is a ${command}: reverse a ${anyOf(voidableCommands)}.` };
  }
  const status = transactionStatusOf(original);
  if (status === "APPROVED" || status === "IN_FLIGHT" || isBeingReversed(original)) return undefined;
  return statusRefusal(original, status, "reverse");
}

/** It ended without an answer, and no REVERSAL waits for its own Reversal yet. */
export function isBeingReversed({ state, reversal, successor }: OriginalState): boolean {
  return state === "ERROR" && reversal === "pending" && successor === null;
}

/**
 * Why this amount of a transaction cannot be refunded now; undefined if it can: once its batch is settled, and in parts
 * up to its amount. `amountMinor` is in the smallest unit of its currency.
 */
export function refundRefusal(original: OriginalState, amountMinor: bigint): Refusal | undefined {
  const { id, command } = original;
  if (original.origin === "switch") return ownedBySwitch(id, "refund");
  if (!isCharging(command)) {
    return { code: "not_refundable", message: `${id} is a ${command}: refund a ${anyOf(chargingCommands)}.` };
  }
  const status = transactionStatusOf(original);
  if (status === "APPROVED") {
    return { code: "not_settled", message: `The batch of ${id} is not settled yet: void it while that is so.` };
  }
  if (status !== "SETTLED") return statusRefusal(original, status, "refund");
  if (original.refundedMinor + amountMinor <= original.amountMinor) return undefined;
  return {
    code: "amount_above_refundable",
    message: `Less than that is left of ${id}: its Refunds come to its amount at most.`,
  };
}

type Verb = "void" | "complete" | "reverse" | "refund";

function anyOf(commands: readonly Command[]): string {
  return new Intl.ListFormat("en-GB", { type: "disjunction" }).format(commands);
}

function ownedBySwitch(id: string, verb: Verb): Refusal {
  return {
    code: "owned_by_switch",
    message: `${id} was reported by a switch: ${verb} it there, and have the switch report that.`,
  };
}

function expiry({ id, createdAtMs }: OriginalState, nowMs: number, preAuthDays: number): Refusal | undefined {
  if (nowMs - createdAtMs <= preAuthDays * dayMs) return undefined;
  return {
    code: "preauth_expired",
    message: `The PreAuth ${id} is older than ${preAuthDays} days: void it, and send a new SALE or PREAUTH.`,
  };
}

function statusRefusal(original: OriginalState, status: Exclude<TransactionStatus, "APPROVED">, verb: Verb): Refusal {
  const { id } = original;
  switch (status) {
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

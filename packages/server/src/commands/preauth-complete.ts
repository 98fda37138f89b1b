import { currencyDecimals } from "@paybell/contract";
import type { FieldProblem } from "../errors.ts";
import type { CardCommandFacts } from "./complete-card.ts";
import { inherit, type OriginalFacts, type OtherTerminal, type SuccessorNumbers } from "./inherit.ts";
import type { PreAuthCompleteRequest } from "./request.ts";
import { amountRule } from "./rules.ts";
import type { TransactionStart } from "./sale.ts";

/** Checks the amount again, now that the original's currency is known. */
export function followingAmountProblem(amount: string, currency: string): FieldProblem | undefined {
  return amountRule(amount, currencyDecimals(currency));
}

/** The facts of a PreAuth-Complete at INIT: its amount is its own, its batch is the one open now. */
export function beginPreAuthComplete(
  request: PreAuthCompleteRequest,
  original: OriginalFacts,
  terminal: SuccessorNumbers,
  start: TransactionStart,
  elsewhere?: OtherTerminal,
): CardCommandFacts {
  const fields = { ...inherit(original, request, terminal, start, elsewhere), amount: request.amount };
  return { kind: "card", command: "PREAUTH_COMPLETE", fields };
}

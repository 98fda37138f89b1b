import type { CardCommandFacts } from "./complete-card.ts";
import { inherit, type OriginalFacts, type OtherTerminal, type SuccessorNumbers } from "./inherit.ts";
import type { RefundRequest } from "./request.ts";
import type { TransactionStart } from "./sale.ts";

/** The facts of a Refund at INIT: amount, invoice number, batch and approval are its own. */
export function beginRefund(
  request: RefundRequest,
  original: OriginalFacts,
  terminal: SuccessorNumbers,
  start: TransactionStart,
  elsewhere?: OtherTerminal,
): CardCommandFacts {
  const inherited = inherit(original, request, terminal, start, elsewhere);
  return { kind: "card", command: "REFUND", fields: { ...inherited, amount: request.amount, approveCode: "", tc: "" } };
}

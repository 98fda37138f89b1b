import type { CardCommandFacts } from "./complete-card.ts";
import { inherit, type OriginalFacts, type SuccessorNumbers } from "./inherit.ts";
import type { VoidRequest } from "./request.ts";
import type { TransactionStart } from "./sale.ts";

/** The facts of a Void at INIT. Its amount is the voided one's; a PreAuth's Void is in no batch. */
export function beginVoid(
  request: VoidRequest,
  original: OriginalFacts,
  terminal: SuccessorNumbers,
  start: TransactionStart,
  { voidsPreAuth }: { readonly voidsPreAuth: boolean },
): CardCommandFacts {
  const numbers = { ...terminal, batchNo: voidsPreAuth ? "" : terminal.batchNo };
  const fields = inherit(original, request, numbers, start);
  const facts = { kind: "card", command: "VOID", fields } as const;
  return voidsPreAuth ? { ...facts, voidsPreAuth } : facts;
}

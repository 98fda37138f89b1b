import type { Init } from "./store.ts";
import type { Transaction } from "./transaction.ts";

/** The transaction that a durable INIT began. */
export function toTransaction(init: Init, facts: Transaction["facts"], createdAtMs: number): Transaction {
  const { partnerId, id, command, reqId, originalId, chainId, callBackUrl, amountMinor, currency, leaseId } = init;
  return {
    partnerId,
    id,
    origin: "command",
    command,
    state: "INIT",
    reqId,
    externalId: null,
    originalId,
    originalExternalId: null,
    chainId,
    callBackUrl,
    amountMinor,
    currency,
    batch: null,
    reversal: null,
    facts,
    notification: null,
    runBy: leaseId,
    createdAtMs,
    completedAtMs: null,
  };
}

import type { CardIpn, Command, SettlementIpn, UnsignedIpn } from "@paybell/contract";
import type { CardFacts } from "../ipn/facts.ts";
import { renderIpn } from "../ipn/render.ts";
import type { SystemFacts, Transaction } from "../ledger/transaction.ts";
import type { PartnerSettings } from "../partners/partner.ts";

/**
 * A transaction as the partner API tells it: every field of its IPN's table but the signature, and what the IPN has
 * not.
 */
export type TransactionView = (UnsignedIpn<CardIpn> | UnsignedIpn<SettlementIpn>) & {
  readonly command: Command;
  /** ISO 8601. */
  readonly createdAt: string;
  readonly notification: { readonly id: string; readonly state: string } | null;
};

export function transactionView(transaction: Transaction, settings: PartnerSettings): TransactionView {
  const { id, command, state, reqId, facts, notification, createdAtMs, callBackUrl } = transaction;
  const ipn =
    facts.kind === "system"
      ? renderSystem(facts, settings)
      : renderIpn(facts, settings, { callbackUrl: callBackUrl ?? settings.callBackUrl ?? "" }).ipn;
  return {
    ...ipn,
    id,
    // As the caller wrote it; the ledger's own is in lower case.
    reqId: ipn.reqId === "" ? (reqId ?? "") : ipn.reqId,
    status: state,
    command,
    createdAt: new Date(createdAtMs).toISOString(),
    notification: notification && { id: notification.id, state: notification.state },
  };
}

/** A system command has no IPN and so no transaction_type; the card's table tells the rest. */
function renderSystem(facts: SystemFacts, settings: PartnerSettings): UnsignedIpn<CardIpn> {
  const asCard: CardFacts = { kind: "card", command: "SALE", fields: facts.fields };
  return { ...renderIpn(asCard, settings, { callbackUrl: "" }).ipn, transaction_type: "" };
}

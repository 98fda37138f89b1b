import type { CardIpn, Command, SettlementIpn, UnsignedIpn } from "@paybell/contract";
import type { SystemFacts } from "../commands/system.ts";
import type { CardFacts } from "../ipn/facts.ts";
import { renderIpn } from "../ipn/render.ts";
import type { Transaction } from "../ledger/transaction.ts";
import type { PartnerSettings } from "../partners/partner.ts";
import { registeredUrl } from "../registered-url.ts";

/**
 * A transaction in the partner API: every field of its IPN's table except the signature, and fields that the IPN lacks.
 */
export type TransactionView = (UnsignedIpn<CardIpn> | (UnsignedIpn<SettlementIpn> & AcquirerSaid)) & {
  readonly command: Command;
  /** ISO 8601. */
  readonly createdAt: string;
  readonly notification: { readonly id: string; readonly state: string } | null;
  /** The issuer's answer to the chip: only in the answer to the request itself. */
  readonly emv?: string;
};

/** The acquirer's answer to a Settlement: section 2.3 has a field for none of it. */
interface AcquirerSaid {
  readonly isoResponseCode: string;
  readonly refId: string;
  readonly settlementDate: string;
}

/** A transaction read later: the same, with its batch and its chain. */
export type TransactionDetail = TransactionView & {
  /**
   * The batch that a settlement settles. Null for a transaction without one here: a PreAuth, a system command, a
   * switch's report.
   */
  readonly batch: { readonly batchNo: string; readonly state: string } | null;
  /** The state of its own Reversal. */
  readonly reversal: "pending" | "done" | "parked" | null;
  /** The first one and all follow-ups: Voids, completion, Reversals, in order. */
  readonly chain: readonly ChainLink[];
};

interface ChainLink {
  readonly id: string;
  readonly command: Command;
  readonly status: string;
  readonly isoResponseCode: string;
  readonly amount: string;
  readonly createdAt: string;
}

export function transactionDetail(
  transaction: Transaction,
  chain: readonly Transaction[],
  settings: PartnerSettings,
): TransactionDetail {
  const { batch, facts, reversal } = transaction;
  return {
    ...transactionView(transaction, settings),
    batch: batch && { batchNo: facts.fields["batchNo"] ?? "", state: batch },
    reversal,
    chain: chain.map((link) => ({
      id: link.id,
      command: link.command,
      status: link.state,
      isoResponseCode: link.facts.fields["isoResponseCode"] ?? "",
      amount: link.facts.fields["amount"] ?? "",
      createdAt: new Date(link.createdAtMs).toISOString(),
    })),
  };
}

export function transactionView(transaction: Transaction, settings: PartnerSettings): TransactionView {
  const { id, command, state, reqId, facts, notification, createdAtMs, callBackUrl, emv } = transaction;
  const ipn = viewOf(facts, settings, callBackUrl ?? registeredUrl(settings, command) ?? "");
  return {
    ...ipn,
    id,
    // As the caller wrote it; the ledger's own is in lower case.
    reqId: ipn.reqId === "" ? (reqId ?? "") : ipn.reqId,
    status: state,
    command,
    createdAt: new Date(createdAtMs).toISOString(),
    notification: notification && { id: notification.id, state: notification.state },
    ...(emv !== undefined && { emv }),
  };
}

function viewOf(facts: Transaction["facts"], settings: PartnerSettings, callbackUrl: string) {
  if (facts.kind === "system") return renderSystem(facts, settings);
  const { ipn, kind } = renderIpn(facts, settings, { callbackUrl });
  if (kind === "card") return ipn;
  const { isoResponseCode = "", refId = "", settlementDate = "" } = facts.fields;
  return { ...ipn, isoResponseCode, refId, settlementDate };
}

/** A system command has no IPN and so no transaction_type; the other fields follow the card's table. */
function renderSystem(facts: SystemFacts, settings: PartnerSettings): UnsignedIpn<CardIpn> {
  const asCard: CardFacts = { kind: "card", command: "SALE", fields: facts.fields };
  return { ...renderIpn(asCard, settings, { callbackUrl: "" }).ipn, transaction_type: "" };
}

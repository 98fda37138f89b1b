import { currencyDecimals, type SettlementEntry } from "@paybell/contract";
import { formatAmount } from "./amount.ts";
import type { SettlementRequest } from "./request.ts";
import type { TerminalGives, TransactionStart } from "./sale.ts";
import type { SettlementTotals } from "./totals.ts";

/** A Settlement's side of the IPN, by the names of section 2.3. What its table has no field for is not in it. */
export interface SettlementCommandFacts {
  readonly kind: "settlement";
  readonly command: "SETTLEMENT";
  /** Without totalAmount: how it is made is the partner's setting. */
  readonly fields: Readonly<Record<string, string>>;
  readonly settlementList: readonly SettlementEntry[];
  /** ISO 4217; absent until the totals are frozen, and for an empty batch. */
  readonly currency?: string;
}

/** How the acquirer answered a Settlement in the end: one that is not answered stays open, and is asked again. */
export type SettlementOutcome =
  | { readonly settled: true; readonly refId?: string }
  | { readonly settled: false; readonly code: string; readonly refId?: string };

export interface CompletedSettlement {
  readonly state: "SUCCESS" | "ERROR";
  readonly facts: SettlementCommandFacts;
}

/** The facts of a Settlement at INIT: its batch is closing, and nothing is counted yet. */
export function beginSettlement(
  request: SettlementRequest,
  terminal: Pick<TerminalGives, "batchNo" | "deviceId">,
  start: TransactionStart,
): SettlementCommandFacts {
  return {
    kind: "settlement",
    command: "SETTLEMENT",
    fields: {
      batchNo: terminal.batchNo,
      deviceId: request.deviceId === undefined || request.deviceId === "" ? terminal.deviceId : request.deviceId,
      extraData: request.extraData ?? "",
      id: start.id,
      merchantTransId: request.merchantTransId ?? "",
      mid: request.mid,
      reqId: request.reqId,
      status: "INIT",
      tid: request.tid,
      transaction_time: new Date(start.atMs).toISOString(),
    },
    settlementList: [],
  };
}

/** The same facts with what the batch comes to, before the acquirer is asked. `list` are those that stand. */
export function freezeSettlement(
  begun: SettlementCommandFacts,
  totals: SettlementTotals,
  list: readonly SettlementEntry[],
): SettlementCommandFacts {
  const { currency, saleQuantity, saleTotalMinor, voidQuantity, voidTotalMinor } = totals;
  const decimals = currencyDecimals(currency) ?? 0;
  const fields = {
    ...begun.fields,
    quantity: String(saleQuantity - voidQuantity),
    saleQuantity: String(saleQuantity),
    saleTotalAmount: formatAmount(saleTotalMinor, decimals),
    voidQuantity: String(voidQuantity),
    voidTotalAmount: formatAmount(voidTotalMinor, decimals),
  };
  const frozen = { kind: begun.kind, command: begun.command, fields, settlementList: list };
  return currency === "" ? frozen : { ...frozen, currency };
}

/**
 * The facts once the acquirer answered: a refused one keeps the totals that were tried, and lists nothing. Its
 * response code and refId are kept with them. Section 2.3 has a field for neither, so its IPN carries neither.
 */
export function completeSettlement(frozen: SettlementCommandFacts, outcome: SettlementOutcome): CompletedSettlement {
  const state = outcome.settled ? "SUCCESS" : "ERROR";
  const isoResponseCode = outcome.settled ? "00" : outcome.code;
  const fields = { ...frozen.fields, status: state, isoResponseCode, refId: outcome.refId ?? "" };
  return { state, facts: { ...frozen, fields, settlementList: outcome.settled ? frozen.settlementList : [] } };
}

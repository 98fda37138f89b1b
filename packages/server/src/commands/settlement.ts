import { currencyDecimals, type SettlementEntry } from "@paybell/contract";
import { formatAmount } from "./amount.ts";
import type { SettlementRequest } from "./request.ts";
import type { TransactionStart } from "./sale.ts";
import type { TerminalSequence } from "./terminal.ts";
import type { SettlementTotals } from "./totals.ts";

/** The IPN facts of a Settlement, by the names of section 2.3, and what else is stored of it. */
export interface SettlementCommandFacts {
  readonly kind: "settlement";
  readonly command: "SETTLEMENT";
  /** Without totalAmount, whose computation is the partner's setting. */
  readonly fields: Readonly<Record<string, string>>;
  readonly settlementList: readonly SettlementEntry[];
  /** ISO 4217; absent until the totals are frozen, and for an empty batch. */
  readonly currency?: string;
}

/** The acquirer's final answer to a Settlement. An unanswered one stays open, and is repeated. */
export type SettlementOutcome =
  | ({ readonly settled: true } & AcquirerSays)
  | ({ readonly settled: false; readonly code: string } & AcquirerSays);

/** Section 2.3 has a field for neither. */
interface AcquirerSays {
  readonly refId?: string | undefined;
  /** As given, in most cases MMDD. */
  readonly settlementDate?: string | undefined;
}

export interface CompletedSettlement {
  readonly state: "SUCCESS" | "ERROR";
  readonly facts: SettlementCommandFacts;
}

/** The facts of a Settlement at INIT: its batch is closing, and nothing is counted yet. */
export function beginSettlement(
  request: SettlementRequest,
  terminal: Pick<TerminalSequence, "batchNo" | "deviceId">,
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

/** The same facts with the totals of the batch, before the acquirer is asked. `list` has the counted transactions. */
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
 * The facts once the acquirer answered. A refused one keeps the totals that were sent, and lists nothing. Response
 * code, refId and settlement date are stored with them; section 2.3 has a field for none of them, nor has its IPN.
 */
export function completeSettlement(frozen: SettlementCommandFacts, outcome: SettlementOutcome): CompletedSettlement {
  const state = outcome.settled ? "SUCCESS" : "ERROR";
  const isoResponseCode = outcome.settled ? "00" : outcome.code;
  const { refId = "", settlementDate = "" } = outcome;
  const fields = { ...frozen.fields, status: state, isoResponseCode, refId, settlementDate };
  return { state, facts: { ...frozen, fields, settlementList: outcome.settled ? frozen.settlementList : [] } };
}

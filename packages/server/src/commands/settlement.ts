import { type Command, currencyDecimals, isCharging, type SettlementEntry } from "@paybell/contract";
import type { SettlementFacts } from "../ipn/facts.ts";
import { approvedCode } from "../response-codes.ts";
import { formatAmount } from "./amount.ts";
import type { TransactionStart } from "./card-facts.ts";
import { given, type SettlementRequest } from "./requests/request.ts";
import type { TerminalSequence } from "./terminal.ts";

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
  readonly facts: SettlementFacts;
}

/** The facts of a Settlement at INIT: its batch is closing, and nothing is counted yet. */
export function beginSettlement(
  request: SettlementRequest,
  terminal: Pick<TerminalSequence, "batchNo" | "deviceId">,
  start: TransactionStart,
): SettlementFacts {
  return {
    kind: "settlement",
    command: "SETTLEMENT",
    fields: {
      batchNo: terminal.batchNo,
      deviceId: given(request.deviceId) ?? terminal.deviceId,
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
  begun: SettlementFacts,
  totals: SettlementTotals,
  list: readonly SettlementEntry[],
): SettlementFacts {
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
export function completeSettlement(frozen: SettlementFacts, outcome: SettlementOutcome): CompletedSettlement {
  const state = outcome.settled ? "SUCCESS" : "ERROR";
  const isoResponseCode = outcome.settled ? approvedCode : outcome.code;
  const { refId = "", settlementDate = "" } = outcome;
  const fields = { ...frozen.fields, status: state, isoResponseCode, refId, settlementDate };
  return { state, facts: { ...frozen, fields, settlementList: outcome.settled ? frozen.settlementList : [] } };
}

/** A transaction of a batch, with the fields for its totals. */
export interface BatchRow {
  readonly command: Command;
  readonly state: "INIT" | "SUCCESS" | "ERROR";
  /** In the smallest unit of the batch's currency. */
  readonly amountMinor: bigint;
  /** A Void of it succeeded. */
  readonly voided: boolean;
  /** Its Reversal is done; a parked one reversed nothing. */
  readonly reversed: boolean;
}

export interface SettlementTotals {
  /** ISO 4217; empty for an empty batch. */
  readonly currency: string;
  readonly saleQuantity: number;
  readonly saleTotalMinor: bigint;
  readonly voidQuantity: number;
  readonly voidTotalMinor: bigint;
}

/**
 * Whether it is counted in the totals: a Sale or PreAuth-Complete that succeeded and was not reversed, voided or not.
 */
function counts({ command, state, reversed }: BatchRow): boolean {
  return isCharging(command) && state === "SUCCESS" && !reversed;
}

/** Whether it is neither voided nor reversed, and so in settlementList. */
export function isCounted(row: BatchRow): boolean {
  return counts(row) && !row.voided;
}

/** The totals of a batch's transactions, exactly: voided ones count on both sides, Voids not by themselves. */
export function settlementTotals(rows: Iterable<BatchRow>, currency: string): SettlementTotals {
  const totals = { saleQuantity: 0, saleTotalMinor: 0n, voidQuantity: 0, voidTotalMinor: 0n };
  for (const row of rows) {
    if (!counts(row)) continue;
    totals.saleQuantity += 1;
    totals.saleTotalMinor += row.amountMinor;
    if (!row.voided) continue;
    totals.voidQuantity += 1;
    totals.voidTotalMinor += row.amountMinor;
  }
  return { currency: totals.saleQuantity === 0 ? "" : currency, ...totals };
}

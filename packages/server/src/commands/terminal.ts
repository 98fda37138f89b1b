import { type Refusal, settlementInProgress } from "./original.ts";

/** The numbers and registration that a terminal contributes to one command. */
export interface TerminalSequence {
  /** Six digits, 000001 to 999999. */
  readonly traceNo: string;
  /** Six digits, or empty for a command without one. */
  readonly invoiceNo: string;
  /** The number of the open batch; empty for a command that belongs to none. */
  readonly batchNo: string;
  /** Empty without a registration. */
  readonly merchantId: string;
  readonly merchantName: string;
  readonly merchantAddress: string;
  readonly deviceId: string;
  readonly appName: string;
}

/** A terminal in the ledger, under its row lock. */
export interface TerminalState {
  readonly mid: string;
  /** The acquirer of its commands; empty: that of the settings. */
  readonly acquirer: string;
  readonly batch: "open" | "closing";
  /** ISO 4217; null while nothing has entered the open batch. */
  readonly batchCurrency: string | null;
  /** The acquirer settled the batch after the Settlement was aborted, and more has entered it since. */
  readonly isSettlementInDoubt: boolean;
}

export interface TerminalAsks {
  /** For a Refund or PreAuth-Complete its original's. Null for a Void, for which the terminal's does not count. */
  readonly mid: string | null;
  /** The original's acquirer, for a follow-up that enters a batch: that acquirer counts the batch. Otherwise absent. */
  readonly acquirer?: string | undefined;
  /** The currency with which a Sale or PreAuth-Complete enters the open batch; null for a command that enters none. */
  readonly entersBatchWith: string | null;
  /** Sale, Void, PreAuth, PreAuth-Complete or Settlement: these wait while a batch is settled. */
  readonly money: boolean;
  /** Settlement or Batch Upload: what the acquirer has settled must be known. */
  readonly settles?: boolean;
}

/** Why a terminal does not accept a command now; undefined if it does. @param terminal undefined: it is not known yet */
export function terminalRefusal(terminal: TerminalState | undefined, asks: TerminalAsks): Refusal | undefined {
  if (terminal !== undefined && asks.mid !== null && asks.mid !== terminal.mid) {
    return {
      code: "terminal_mid_mismatch",
      message:
        "The terminal is known under another mid: send that one, name a terminal (tid) of the original's mid, or have " +
        "the operator change the terminal.",
    };
  }
  // A command opens a terminal at the acquirer of the settings.
  if (asks.acquirer !== undefined && asks.acquirer !== (terminal?.acquirer ?? "")) {
    return {
      code: "other_acquirer",
      message: "The terminal belongs to another acquirer than the original: name a terminal (tid) of that acquirer.",
    };
  }
  if (terminal === undefined) return undefined;
  if (terminal.batch === "closing" && asks.money) return settlementInProgress("The terminal's batch");
  if (terminal.isSettlementInDoubt && asks.settles === true) {
    return {
      code: "settlement_in_doubt",
      message: "The acquirer accepted a settlement that was aborted, and the batch has changed since.",
    };
  }
  const { entersBatchWith: currency } = asks;
  if (currency === null || terminal.batchCurrency === null || currency === terminal.batchCurrency) return undefined;
  return {
    code: "batch_currency",
    message: `The terminal's open batch is in ${terminal.batchCurrency}: settle it before anything in ${currency}.`,
  };
}

import { type Refusal, settlementInProgress } from "./refusal.ts";

/** A terminal as the ledger holds it under its row lock. */
export interface TerminalState {
  /** The merchant under which the terminal is known. */
  readonly mid: string;
  /** Whom its commands go to; empty: the acquirer of the settings. */
  readonly acquirer: string;
  /** The current batch's. */
  readonly batch: "open" | "closing";
  /** ISO 4217; null while nothing has entered the open batch. */
  readonly batchCurrency: string | null;
}

export interface TerminalAsks {
  /** Null for what follows an original: its mid counts, whatever the terminal's is by now. */
  readonly mid: string | null;
  /** Of the original, for what enters a batch after it: its acquirer counts that batch. Absent for everything else. */
  readonly acquirer?: string | undefined;
  /** The currency with which a Sale or PreAuth-Complete enters the open batch; null for what enters none. */
  readonly entersBatchWith: string | null;
  /** Sale, Void, PreAuth, PreAuth-Complete or Settlement: while a batch is settled they all wait. */
  readonly money: boolean;
}

/** Why a terminal does not take a command now; undefined when it does. */
export function terminalRefusal(terminal: TerminalState, asks: TerminalAsks): Refusal | undefined {
  if (asks.mid !== null && asks.mid !== terminal.mid) {
    return {
      code: "terminal_mid_mismatch",
      message: "The terminal is known under another mid: send that one, or have the operator change the terminal.",
    };
  }
  if (asks.acquirer !== undefined && asks.acquirer !== terminal.acquirer) {
    return {
      code: "other_acquirer",
      message: "The terminal belongs to another acquirer than the original: name a terminal (tid) of that acquirer.",
    };
  }
  if (terminal.batch === "closing" && asks.money) return settlementInProgress("The terminal's batch");
  const { entersBatchWith: currency } = asks;
  if (currency === null || terminal.batchCurrency === null || currency === terminal.batchCurrency) return undefined;
  return {
    code: "batch_currency",
    message: `The terminal's open batch is in ${terminal.batchCurrency}: settle it before anything in ${currency}.`,
  };
}

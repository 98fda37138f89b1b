import { responseMeaning } from "@paybell/contract";
import type { ReversalEnd } from "../ledger/reverser.ts";
import type { Transaction } from "../ledger/transaction.ts";
import { indent } from "./output-fields.ts";
import { flowPainted, label, type OutputStyle, paint } from "./output-style.ts";
import { printable, wrap } from "./output-text.ts";

/** A Reversal that the acquirer answered. It has no IPN: section 1 defines none for a system command. */
export function reversalLines({ id, command, facts }: Transaction, end: ReversalEnd, style: OutputStyle): string[] {
  const isDone = end.state === "DONE";
  const { amount = "", currency = "", traceNo = "", reqId = "" } = facts.fields;
  const badge = label(style, isDone ? "goodLabel" : "badLabel", isDone ? "REVERSED" : "PARKED");
  const title = [isDone ? printable(command) : `Reversal of ${printable(command)}`, printable(`${amount} ${currency}`)];
  const answer = `answered ${meaningOf(end.responseCode)}`;
  const pieces = [`transaction ${id}`, `traceNo ${traceNo}`, `reqId ${reqId}`].map((text) => ({
    text: printable(text),
  }));
  return [
    `${badge}  ${paint(style, "strong", title.join("  ").trim())}  ${paint(style, isDone ? "good" : "bad", answer)}`,
    ...wrap(outcomeOf(end), style.columns - indent.length).map((line) => indent + line),
    ...flowPainted(pieces, " · ", style.columns - indent.length, style).map((line) => indent + line),
    "",
  ];
}

function outcomeOf({ state, responseCode }: ReversalEnd): string {
  if (state === "PARKED") return "It stays locked until it is resolved with the acquirer: money may have moved.";
  if (responseCode === "25") return "The acquirer never saw it: nothing is charged.";
  return "Nothing is charged: it is in no total and no list.";
}

function meaningOf(code: string): string {
  const meaning = code === "00" ? "Approved" : responseMeaning(code);
  return printable(meaning === "" ? code : `${code} (${meaning})`);
}

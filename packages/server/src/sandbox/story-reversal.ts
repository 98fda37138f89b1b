import { responseMeaning } from "@paybell/contract";
import type { ReversalEnd } from "../ledger/reverser.ts";
import type { Transaction } from "../ledger/transaction.ts";
import { indent } from "./story-fields.ts";
import { flowPainted, type Look, label, paint } from "./story-look.ts";
import { printable, wrap } from "./story-text.ts";

/** A Reversal that the acquirer answered. No IPN tells of it: section 1 has none for a system command. */
export function reversalLines({ id, command, facts }: Transaction, end: ReversalEnd, look: Look): string[] {
  const isDone = end.state === "DONE";
  const { amount = "", currency = "", traceNo = "", reqId = "" } = facts.fields;
  const badge = label(look, isDone ? "goodLabel" : "badLabel", isDone ? "REVERSED" : "PARKED");
  const title = [isDone ? printable(command) : `Reversal of ${printable(command)}`, printable(`${amount} ${currency}`)];
  const answer = `answered ${meaningOf(end.responseCode)}`;
  const pieces = [`transaction ${id}`, `traceNo ${traceNo}`, `reqId ${reqId}`].map((text) => ({
    text: printable(text),
  }));
  return [
    `${badge}  ${paint(look, "strong", title.join("  ").trim())}  ${paint(look, isDone ? "good" : "bad", answer)}`,
    ...wrap(outcomeOf(end), look.columns - indent.length).map((line) => indent + line),
    ...flowPainted(pieces, " · ", look.columns - indent.length, look).map((line) => indent + line),
    "",
  ];
}

function outcomeOf({ state, responseCode }: ReversalEnd): string {
  if (state === "PARKED")
    return "It stays locked until it is settled with the acquirer: nobody knows that nothing stands.";
  if (responseCode === "25") return "The acquirer never saw it: nothing of it stands.";
  return "Nothing of it stands: it counts in no total and no list.";
}

function meaningOf(code: string): string {
  const meaning = code === "00" ? "Approved" : responseMeaning(code);
  return printable(meaning === "" ? code : `${code} (${meaning})`);
}

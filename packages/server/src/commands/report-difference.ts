import type { Command } from "@paybell/contract";
import type { ReportedFacts } from "./reported-facts.ts";

/** What a report comes to, as far as a repetition of it must come to the same. */
export interface ReportContent {
  readonly command: Command;
  readonly originalExternalId: string | null;
  readonly callBackUrl: string | null;
  readonly facts: ReportedFacts;
}

/**
 * The names of what differs between a report and the one that came under its externalId before; empty for a repetition.
 *
 * @param isIdGiven whether the switch gave the transaction's id: otherwise each report has another
 */
export function reportDifference(now: ReportContent, before: ReportContent, isIdGiven: boolean): string[] {
  if (now.command !== before.command) return ["command"];
  const differs = (["originalExternalId", "callBackUrl"] as const).filter((name) => now[name] !== before[name]);
  const names = new Set([...Object.keys(now.facts.fields), ...Object.keys(before.facts.fields)]);
  if (!isIdGiven) names.delete("id");
  const fields = [...names].filter((name) => now.facts.fields[name] !== before.facts.fields[name]).sort();
  return [...differs, ...fields, ...(listOf(now.facts) === listOf(before.facts) ? [] : ["settlementList"])];
}

function listOf(facts: ReportedFacts): string {
  if (facts.kind !== "settlement") return "";
  return JSON.stringify(facts.settlementList.map(({ reqId, refNo }) => [reqId, refNo]));
}

import type { Command } from "@paybell/contract";
import type { ReportedFacts } from "./reported-facts.ts";

/** The content of a report that a repetition must have as well. */
export interface ReportContent {
  readonly command: Command;
  readonly originalExternalId: string | null;
  readonly callBackUrl: string | null;
  readonly facts: ReportedFacts;
}

/**
 * The names of the differences between a report and an earlier one with its externalId; empty for a repetition.
 *
 * @param isIdGiven whether the switch assigned the transaction's id: otherwise each report has another one
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

import {
  type Command,
  cardSchemeFor,
  defaultPaymentType,
  type IpnKind,
  ipnFields,
  notifiedCommands,
} from "@paybell/contract";
import { idOfText } from "../../ids.ts";
import type { IpnFacts } from "../../ipn/facts.ts";
import type { SystemFacts } from "../system.ts";
import { type CompletionRequest, completionKind } from "./completion.ts";

/** The IPN facts of a reported command, by the names of its table; a system command has none, and is only recorded. */
export type ReportedFacts = IpnFacts | SystemFacts;

export interface ReportedAs {
  /** The transaction's id: the switch's own if it assigned one. */
  readonly id: string;
  /** The Void's original is known to be a PreAuth. */
  readonly voidsPreAuth?: boolean;
  /** The reqId of its original; absent: the original is not known. */
  readonly originalReqId?: string;
}

/** The facts of an accepted report. Values stay as given; unknown ones are derived from other fields where possible. */
export function reportedFacts(completion: CompletionRequest, { id, ...known }: ReportedAs): ReportedFacts {
  const { command } = completion;
  if (command === "SETTLEMENT") {
    const { settlementList = [], currency = "" } = completion;
    const facts = { kind: "settlement", command, fields: settlementFields(completion, id), settlementList } as const;
    return currency === "" ? facts : { ...facts, currency };
  }
  const card = notifiedCommands.find((notified) => notified === command);
  if (card === undefined || card === "SETTLEMENT") return { kind: "system", fields: tableFields(completion, id) };
  const { voidsPreAuth, originalReqId } = known;
  return {
    kind: "card",
    command: card,
    ...(voidsPreAuth === true && { voidsPreAuth }),
    ...(originalReqId !== undefined && { originalReqId }),
    fields: cardFields(completion, id),
  };
}

/**
 * The string fields of its table that a report may have, in its order. Cached, because thousands of reports per second
 * use them.
 */
const textNames: Readonly<Record<IpnKind, readonly (keyof CompletionRequest)[]>> = {
  card: textNamesOf("card"),
  settlement: textNamesOf("settlement"),
};

function textNamesOf(kind: IpnKind): readonly (keyof CompletionRequest)[] {
  const texts = ipnFields(kind).filter(({ name, type }) => type === "string" && name !== "signature" && name !== "id");
  return texts.map(({ name }) => name as keyof CompletionRequest);
}

function tableFields(completion: CompletionRequest, id: string): Record<string, string> {
  const fields: Record<string, string> = { id };
  for (const name of textNames[completionKind(completion.command)]) {
    const value = completion[name];
    if (typeof value === "string" && value !== "") fields[name] = value;
  }
  return fields;
}

/** quantity is the number of Sales minus that of Voids (section 2.3); without Voids that number is zero. */
function settlementFields(completion: CompletionRequest, id: string): Record<string, string> {
  const fields = tableFields(completion, id);
  const { saleQuantity, voidQuantity } = fields;
  if (voidQuantity === "0") fields["voidTotalAmount"] ??= "0";
  if (saleQuantity !== undefined && voidQuantity !== undefined) {
    fields["quantity"] ??= String(Number(saleQuantity) - Number(voidQuantity));
  }
  return fields;
}

/**
 * mid and merchantId mean the same (section 2.2), paymentType has a default there, and a scheme follows from its AID.
 */
function cardFields(completion: CompletionRequest, id: string): Record<string, string> {
  const fields = tableFields(completion, id);
  const same = fields["mid"] ?? fields["merchantId"];
  if (same !== undefined) {
    fields["mid"] ??= same;
    fields["merchantId"] ??= same;
  }
  fields["paymentType"] ??= defaultPaymentType;
  const { aid } = fields;
  if (aid !== undefined && fields["cardScheme"] === undefined) {
    const scheme = cardSchemeFor(aid);
    if (scheme !== "") fields["cardScheme"] = scheme;
  }
  return fields;
}

/**
 * The id of the batch that a switch assigned a transaction to, or settled with it: the same for all reports with one
 * mid, tid and batch number, as given. A reused number has the same id again; time distinguishes the rounds. Null
 * without a batch number, and without both mid and tid.
 *
 * @param fields the report's facts, by the names of its table
 */
export function reportedBatch(partnerId: string, fields: Readonly<Record<string, string>>): string | null {
  const { batchNo = "", mid = "", tid = "" } = fields;
  if (batchNo === "" || (mid === "" && tid === "")) return null;
  // No value contains a NUL, so different values cannot collide.
  return idOfText([partnerId, mid, tid, batchNo].join("\0"));
}

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

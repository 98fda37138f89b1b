import { currencyDecimals, type IpnKind, type SettlementEntry, voidableCommands } from "@paybell/contract";
import type { FieldProblem } from "../../errors.ts";
import { holdsCardNumber } from "../../guards/card-number.ts";
import { isSensitive } from "../../guards/sensitive-keys.ts";
import { isUuid } from "../../ids.ts";
import { approvedCode } from "../../response-codes.ts";
import { amountShapeProblem } from "../amount.ts";
import { shownDigitsProblem, swipeTypeProblem } from "../requests/card.ts";
import type { TextField } from "../requests/request.ts";
import {
  amountOrZeroRule,
  amountRule,
  broken,
  bytesProblem,
  cardNumberProblem,
  currencyRule,
  delimiterProblem,
  oneOf,
  paymentTypeRule,
  type RuleContext,
  replaceUnsendable,
  reqIdRule,
  textProblem,
} from "../requests/rules.ts";
import { type CompletionRequest, completionFields, completionKind, reportedCommands } from "./completion.ts";
import { isOfUnknownUnit, type ReportFormat } from "./convert-report.ts";

/** A list is checked until this many entries are invalid: that is enough to find the cause. */
const entryProblemsMax = 100;

interface Judge extends Partial<Pick<ReportFormat, "amounts">> {
  /** `any`: a card that was only verified is reported as a success with amount zero. Default `declined`. */
  readonly zeroAmounts?: "declined" | "any";
}

/**
 * Everything wrong with a report beyond its shape; empty if it is accepted. Never repeats a value. Whether its
 * callBackUrl can be called is checked with the partner's addresses, not here.
 */
export function completionProblems(completion: CompletionRequest, context: Judge): FieldProblem[] {
  const kind = completionKind(completion.command);
  const found = new Found();
  judgeTexts(completion, kind, found);
  if (completion.settlementList !== undefined) judgeEntries(completion.settlementList, found);
  judgeRules(completion, kind, context, found);
  return found.problems;
}

/** The problems so far. Measured: with a list per rule, checking was a third of all allocation. */
class Found {
  readonly problems: FieldProblem[] = [];

  add(problem: FieldProblem | undefined): void {
    if (problem !== undefined) this.problems.push(problem);
  }
}

/** Signed values with a delimiter. Nothing stops an IPN, so they are sent unchanged, and reported to the operator. */
export function completionWarnings(completion: CompletionRequest, context: Pick<RuleContext, "signing">) {
  const kind = completionKind(completion.command);
  const found = new Found();
  for (const name in completion) {
    const value = completion[name as keyof CompletionRequest];
    const isSent = completion.status === "SUCCESS" || name !== "approveCode";
    if (typeof value === "string" && isSent) found.add(delimiterProblem(name, value, kind, context.signing));
  }
  return found.problems;
}

/** Thousands of reports arrive per second, so everything that does not depend on them is computed once. */
interface Table {
  readonly fields: ReadonlyMap<string, TextField>;
  readonly required: readonly string[];
  readonly transactionTypes: readonly string[];
}

const tables: Readonly<Record<IpnKind, Table>> = {
  card: tableOf("card"),
  settlement: tableOf("settlement"),
};

function tableOf(kind: IpnKind): Table {
  const fields = completionFields[kind].filter((field) => field.type === "string");
  return {
    fields: new Map(fields.map((field) => [field.name, field])),
    required: fields.filter((field) => field.required).map((field) => field.name),
    transactionTypes: fields.find(({ name }) => name === "transaction_type")?.values ?? [],
  };
}

const finalStatuses = ["SUCCESS", "ERROR"];

/** UUIDs, and checked as such: by chance, one may look like a card number. */
const uuidFields: ReadonlySet<string> = new Set(["partnerId", "id", "reqId"]);

function judgeTexts(completion: CompletionRequest, kind: IpnKind, found: Found): void {
  const { fields, required } = tables[kind];
  for (const name in completion) {
    const value = completion[name as keyof CompletionRequest];
    const field = fields.get(name);
    if (value === undefined || (name === "settlementList" && kind === "settlement")) continue;
    if (field === undefined) {
      found.add(broken(name, "unknown_field", `is no field of a ${kind} IPN`));
    } else if (typeof value === "string" && value !== "") {
      found.add(textProblem(name, value));
      found.add(bytesProblem(name, field, value));
      if (!uuidFields.has(name)) found.add(cardNumberProblem(name, value));
    }
  }
  for (const name of required) {
    const value = completion[name as keyof CompletionRequest];
    if (value === undefined || value === "") found.add(broken(name, "missing_field", "is required"));
  }
}

function judgeEntries(list: readonly SettlementEntry[], found: Found): void {
  const problemsMax = found.problems.length + entryProblemsMax;
  for (const [at, { reqId, refNo }] of list.entries()) {
    const path = `settlementList[${at}]`;
    found.add(textProblem(`${path}.reqId`, reqId));
    found.add(textProblem(`${path}.refNo`, refNo));
    if (!isUuid(reqId)) found.add(cardNumberProblem(`${path}.reqId`, reqId));
    found.add(cardNumberProblem(`${path}.refNo`, refNo));
    if (found.problems.length >= problemsMax) break;
  }
}

function judgeRules(completion: CompletionRequest, kind: IpnKind, context: Judge, found: Found): void {
  const { partnerId, command, id = "", reqId = "", status, transaction_type: type = "" } = completion;
  // A misspelled command would be recorded as one without notification: paid, but the partner not notified.
  found.add(oneOf("command", command, reportedCommands));
  if (partnerId !== "" && !isUuid(partnerId)) found.add(broken("partnerId", "unknown_partner", "is no UUID"));
  if (id !== "" && !isUuid(id)) found.add(broken("id", "invalid_value", "is no UUID"));
  found.add(reqIdRule("reqId", reqId));
  found.add(oneOf("originalCommand", completion.originalCommand ?? "", voidableCommands));
  found.add(oneOf("status", status, finalStatuses));
  found.add(oneOf("transaction_type", type, tables[kind].transactionTypes));
  found.add(timeRule("transDateTime", completion.transDateTime));
  found.add(timeRule("transaction_time", completion.transaction_time));
  if (context.amounts === "minor" && isOfUnknownUnit(completion)) {
    found.add(broken("currency", "missing_field", "is required: this partner's amounts are in its smallest unit"));
  }
  if (kind === "card") judgeCard(completion, context, found);
  else {
    found.add(currencyRule(completion.currency ?? "", currencyDecimals(completion.currency ?? "")));
    for (const problem of settlementProblems(completion)) found.add(problem);
  }
}

function judgeCard(completion: CompletionRequest, { zeroAmounts }: Judge, found: Found): void {
  const { amount = "", currency = "", cardNumber = "", swipeType = "", paymentType = "" } = completion;
  const decimals = currencyDecimals(currency);
  found.add(resultRule(completion.status, completion.isoResponseCode ?? ""));
  const mayBeZero = zeroAmounts === "any" || completion.status === "ERROR";
  if (amount !== "") found.add(mayBeZero ? amountOrZeroRule(amount, decimals) : amountRule(amount, decimals));
  found.add(currencyRule(currency, decimals));
  found.add(paymentTypeRule(paymentType));
  found.add(swipeTypeProblem("swipeType", swipeType));
  found.add(shownDigitsProblem("cardNumber", cardNumber));
}

/** Section 7: 00 means success, any other value is an error. */
function resultRule(status: string, isoResponseCode: string): FieldProblem | undefined {
  if (isoResponseCode === "" || (status !== "SUCCESS" && status !== "ERROR")) return undefined;
  if ((status === "SUCCESS") === (isoResponseCode === approvedCode)) return undefined;
  return broken("status", "invalid_value", "must be SUCCESS with isoResponseCode 00, and ERROR with any other");
}

function timeRule(field: string, value = ""): FieldProblem | undefined {
  if (value === "" || isReportedTime(value)) return undefined;
  return broken(field, "invalid_value", "must be yyyymmddhhmmss or an ISO 8601 time with its zone, and exist");
}

const quantities = ["quantity", "saleQuantity", "voidQuantity"] as const;
const totals = ["saleTotalAmount", "voidTotalAmount", "totalAmount"] as const;
/** Without these a partner cannot reconcile; the others follow from them. */
const requiredOfSuccess = ["saleQuantity", "saleTotalAmount", "voidQuantity"] as const;

const quantityPattern = /^(?:0|[1-9]\d{0,8})$/;

/** Checks the totals of a reported Settlement, individually and for consistency. */
function settlementProblems(settlement: CompletionRequest): FieldProblem[] {
  const problems = [...quantityProblems(settlement), ...totalProblems(settlement)];
  if (settlement.status === "SUCCESS") {
    const required =
      settlement.voidQuantity === "0" ? requiredOfSuccess : ([...requiredOfSuccess, "voidTotalAmount"] as const);
    const missing = required.filter((name) => (settlement[name] ?? "") === "");
    problems.push(
      ...missing.map((name) => broken(name, "missing_field", "is required of a settlement that succeeded")),
    );
  }
  return problems.length > 0 ? problems : countProblems(settlement);
}

function quantityProblems(settlement: CompletionRequest): FieldProblem[] {
  return quantities.flatMap((name) => {
    const value = settlement[name] ?? "";
    return value === "" || quantityPattern.test(value)
      ? []
      : [broken(name, "invalid_value", "must be a whole number without leading zeros, at most 999999999")];
  });
}

function totalProblems(settlement: CompletionRequest): FieldProblem[] {
  const decimals = currencyDecimals(settlement.currency ?? "");
  return totals.flatMap((name) => {
    const value = settlement[name] ?? "";
    const problem = value === "" ? undefined : amountShapeProblem(value, decimals);
    return problem === undefined ? [] : [broken(name, "invalid_amount", problem)];
  });
}

/**
 * Section 2.3: quantity is the number of Sales minus that of Voids, and the list contains exactly those that are not
 * voided. A voided Sale counts on both sides, so there are never more Voids than Sales.
 */
function countProblems(settlement: CompletionRequest): FieldProblem[] {
  const { quantity = "", saleQuantity = "", voidQuantity = "", settlementList, status } = settlement;
  if (saleQuantity === "" || voidQuantity === "") return [];
  const counted = Number(saleQuantity) - Number(voidQuantity);
  if (counted < 0) {
    return [broken("voidQuantity", "invalid_value", "must be at most saleQuantity, which includes the voided ones")];
  }
  if (quantity !== "" && Number(quantity) !== counted) {
    return [broken("quantity", "invalid_value", `must be saleQuantity less voidQuantity, ${counted}`)];
  }
  if (status !== "SUCCESS" || settlementList === undefined || settlementList.length === counted) return [];
  const rule = `must list the ${counted} transactions of quantity, found ${settlementList.length}`;
  return [broken("settlementList", "invalid_value", rule)];
}

const digitsPattern = /^\d{14}$/;
/** With its zone, because otherwise the instant is ambiguous. */
const instantPattern = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(?:\.\d{1,9})?(?:Z|[+-](?:[01]\d|2[0-3]):[0-5]\d)$/;
const monthDays = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];

/** Whether a switch may report this time: 14 digits, which are sent as given, or an ISO 8601 instant; it must exist. */
export function isReportedTime(text: string): boolean {
  if (digitsPattern.test(text)) return exists(text, 0);
  return instantPattern.test(text) && exists(text, 1);
}

/** @param gap the number of characters between two parts */
function exists(text: string, gap: number): boolean {
  const pair = (nth: number) => Number(text.slice(4 + nth * (2 + gap) + gap, 6 + nth * (2 + gap) + gap));
  const year = Number(text.slice(0, 4));
  const month = pair(0);
  const day = pair(1);
  return day >= 1 && day <= daysIn(year, month) && pair(2) <= 23 && pair(3) <= 59 && pair(4) <= 59;
}

/** Zero for a month that does not exist. */
function daysIn(year: number, month: number): number {
  const isLeapDay = month === 2 && year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0);
  return (monthDays[month - 1] ?? 0) + (isLeapDay ? 1 : 0);
}

const textCharactersMax = 4_096;
const entriesMax = 100;
const depthMax = 6;
const hidden = "(holds what looks like card data)";

/**
 * A refused item as the operator may see it: complete except for card data, and bounded, because its shape was not
 * checked.
 */
export function redactItem(item: unknown, depth = 0): unknown {
  if (typeof item === "string") return redactText(item);
  if (typeof item === "number") return holdsCardNumber(String(item)) ? hidden : item;
  if (typeof item !== "object" || item === null) return item;
  if (depth === depthMax) return "(nested more deeply than is kept)";
  if (Array.isArray(item)) {
    const kept = item.slice(0, entriesMax).map((entry: unknown) => redactItem(entry, depth + 1));
    return item.length > entriesMax ? [...kept, `(${item.length - entriesMax} more)`] : kept;
  }
  const entries = Object.entries(item).slice(0, entriesMax);
  return Object.fromEntries(
    entries.map(([name, value]) => [
      redactText(name),
      isSensitive(name, value) ? hidden : redactItem(value, depth + 1),
    ]),
  );
}

function redactText(text: string): string {
  return holdsCardNumber(text) ? hidden : replaceUnsendable(text.slice(0, textCharactersMax));
}

import { currencyDecimals, type IpnKind, type SettlementEntry, voidableCommands } from "@paybell/contract";
import type { FieldProblem } from "../errors.ts";
import { isUuid, isUuidV4 } from "../ids.ts";
import { swipeTypeProblem } from "./card.ts";
import { cardNumberProblem } from "./card-number.ts";
import { settlementProblems } from "./check-settlement.ts";
import { type CompletionRequest, completionFields, completionKind, reportedCommands } from "./completion.ts";
import { delimiterProblem } from "./delimiter.ts";
import type { TextField } from "./field.ts";
import { shownDigitsProblem } from "./masked-number.ts";
import { isReportedTime } from "./reported-time.ts";
import {
  amountOrZeroRule,
  amountRule,
  broken,
  bytesProblem,
  currencyRule,
  paymentTypeRule,
  type RuleContext,
} from "./rules.ts";
import { textProblem } from "./text.ts";

/** A list is checked until this many entries are invalid: that is enough to find the cause. */
const entryProblemsMax = 100;

interface Judge extends Pick<RuleContext, "registeredDeviceIds"> {
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
  judgeTexts(completion, kind, context, found);
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

function judgeTexts(completion: CompletionRequest, kind: IpnKind, context: Judge, found: Found): void {
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
      const exempt = uuidFields.has(name) || (name === "deviceId" && context.registeredDeviceIds.has(value));
      if (!exempt) found.add(cardNumberProblem(name, value));
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
  if (reqId !== "" && !isUuidV4(reqId)) found.add(broken("reqId", "invalid_req_id", "is no UUID v4"));
  found.add(oneOf("originalCommand", completion.originalCommand ?? "", voidableCommands));
  found.add(oneOf("status", status, finalStatuses));
  found.add(oneOf("transaction_type", type, tables[kind].transactionTypes));
  found.add(timeRule("transDateTime", completion.transDateTime));
  found.add(timeRule("transaction_time", completion.transaction_time));
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
  if (swipeType !== "") found.add(swipeTypeProblem("swipeType", swipeType));
  found.add(shownDigitsProblem("cardNumber", cardNumber));
}

/** Section 7: 00 means success, any other value is an error. */
function resultRule(status: string, isoResponseCode: string): FieldProblem | undefined {
  if (isoResponseCode === "" || (status !== "SUCCESS" && status !== "ERROR")) return undefined;
  if ((status === "SUCCESS") === (isoResponseCode === "00")) return undefined;
  return broken("status", "invalid_value", "must be SUCCESS with isoResponseCode 00, and ERROR with any other");
}

function oneOf(field: string, value: string, allowed: readonly string[]): FieldProblem | undefined {
  if (value === "" || allowed.includes(value)) return undefined;
  return broken(field, "invalid_value", `must be one of ${allowed.join(", ")}`);
}

function timeRule(field: string, value = ""): FieldProblem | undefined {
  if (value === "" || isReportedTime(value)) return undefined;
  return broken(field, "invalid_value", "must be yyyymmddhhmmss or an ISO 8601 time with its zone, and exist");
}

import {
  commands,
  currencyDecimals,
  type IpnKind,
  type SettlementEntry,
  settlementIpnFields,
  transactionTypes,
} from "@paybell/contract";
import type { FieldProblem } from "../errors.ts";
import { isUuid, isUuidV4 } from "../ids.ts";
import { cardSchemeProblem, swipeTypeProblem } from "./card.ts";
import { cardNumberProblem } from "./card-number.ts";
import { type CompletionRequest, completionFields, completionKind } from "./completion.ts";
import { delimiterProblem } from "./delimiter.ts";
import type { TextField } from "./field.ts";
import { shownDigitsProblem } from "./masked-number.ts";
import { isReportedTime } from "./reported-time.ts";
import { amountRule, broken, bytesProblem, type CheckContext, currencyRule, paymentTypeRule } from "./rules.ts";
import { textProblem } from "./text.ts";

/** A list is judged until so many of its entries are bad: nobody needs more to find the cause. */
const entryProblemsMax = 100;

type Judge = Pick<CheckContext, "registeredDeviceIds">;

/**
 * Everything wrong with a report beyond its shape, all at once; empty when it is accepted. Never repeats a value.
 * Whether its callBackUrl can be called is judged with the partner's addresses, not here.
 */
export function completionProblems(completion: CompletionRequest, context: Judge): FieldProblem[] {
  const kind = completionKind(completion.command);
  return [
    ...textProblems(completion, kind, context),
    ...entryProblems(completion.settlementList ?? []),
    ...ruleProblems(completion, kind),
  ].filter((problem) => problem !== undefined);
}

/** Signed values with a delimiter: nothing stops an IPN, so they are sent as they are, and the operator is told. */
export function completionWarnings(completion: CompletionRequest, context: Pick<CheckContext, "signing">) {
  const kind = completionKind(completion.command);
  return Object.entries(completion)
    .filter((entry): entry is [string, string] => typeof entry[1] === "string")
    .map(([name, value]) => delimiterProblem(name, value, kind, context.signing))
    .filter((problem) => problem !== undefined);
}

/** Reports come in thousands a second: what does not depend on them is made once. */
interface Table {
  readonly fields: ReadonlyMap<string, TextField>;
  readonly required: readonly string[];
  readonly transactionTypes: readonly string[];
}

const tables: Readonly<Record<IpnKind, Table>> = {
  card: tableOf("card", transactionTypes),
  settlement: tableOf("settlement", settlementTypes()),
};

function tableOf(kind: IpnKind, types: readonly string[]): Table {
  const fields = completionFields[kind].filter((field) => field.type === "string");
  return {
    fields: new Map(fields.map((field) => [field.name, field])),
    required: fields.filter((field) => field.required).map((field) => field.name),
    transactionTypes: types,
  };
}

function settlementTypes(): readonly string[] {
  return settlementIpnFields.flatMap((field) => (field.name === "transaction_type" ? (field.values ?? []) : []));
}

const finalStatuses = ["SUCCESS", "ERROR"];

/** UUIDs, and judged as such: by chance, one may look like a card number. */
const uuidFields: ReadonlySet<string> = new Set(["partnerId", "id", "reqId"]);

function textProblems(completion: CompletionRequest, kind: IpnKind, context: Judge): (FieldProblem | undefined)[] {
  const { fields, required } = tables[kind];
  const problems: (FieldProblem | undefined)[] = [];
  for (const name in completion) {
    const value = completion[name as keyof CompletionRequest];
    const field = fields.get(name);
    if (value === undefined || (name === "settlementList" && kind === "settlement")) continue;
    if (field === undefined) {
      problems.push(broken(name, "unknown_field", `is no field of a ${kind} IPN`));
    } else if (typeof value === "string" && value !== "") {
      const exempt = uuidFields.has(name) || (name === "deviceId" && context.registeredDeviceIds.has(value));
      problems.push(
        textProblem(name, value),
        bytesProblem(name, field, value),
        exempt ? undefined : cardNumberProblem(name, value),
      );
    }
  }
  for (const name of required) {
    const value = completion[name as keyof CompletionRequest];
    if (value === undefined || value === "") problems.push(broken(name, "missing_field", "is required"));
  }
  return problems;
}

function entryProblems(list: readonly SettlementEntry[]): FieldProblem[] {
  const problems: FieldProblem[] = [];
  for (const [at, { reqId, refNo }] of list.entries()) {
    const path = `settlementList[${at}]`;
    const found = [
      textProblem(`${path}.reqId`, reqId),
      textProblem(`${path}.refNo`, refNo),
      isUuid(reqId) ? undefined : cardNumberProblem(`${path}.reqId`, reqId),
      cardNumberProblem(`${path}.refNo`, refNo),
    ];
    problems.push(...found.filter((problem) => problem !== undefined));
    if (problems.length >= entryProblemsMax) break;
  }
  return problems;
}

function ruleProblems(completion: CompletionRequest, kind: IpnKind): (FieldProblem | undefined)[] {
  const { partnerId, command, id = "", reqId = "", status, transaction_type: type = "" } = completion;
  return [
    // A slip would be recorded as one that is not notified: paid, and nobody told.
    oneOf("command", command, commands),
    partnerId === "" || isUuid(partnerId) ? undefined : broken("partnerId", "unknown_partner", "is no UUID"),
    id === "" || isUuid(id) ? undefined : broken("id", "invalid_value", "is no UUID"),
    reqId === "" || isUuidV4(reqId) ? undefined : broken("reqId", "invalid_req_id", "is no UUID v4"),
    oneOf("status", status, finalStatuses),
    oneOf("transaction_type", type, tables[kind].transactionTypes),
    timeRule("transDateTime", completion.transDateTime),
    timeRule("transaction_time", completion.transaction_time),
    ...(kind === "card" ? cardRules(completion) : []),
  ];
}

function cardRules(completion: CompletionRequest): (FieldProblem | undefined)[] {
  const { amount = "", currency = "", cardNumber = "", cardScheme = "", swipeType = "", paymentType = "" } = completion;
  const decimals = currencyDecimals(currency);
  return [
    resultRule(completion.status, completion.isoResponseCode ?? ""),
    amount === "" ? undefined : amountRule(amount, decimals),
    currencyRule(currency, decimals),
    paymentTypeRule(paymentType),
    swipeType === "" ? undefined : swipeTypeProblem("swipeType", swipeType),
    // Any case: the specification's own sample mixes it.
    cardScheme === "" ? undefined : cardSchemeProblem("cardScheme", cardScheme.toUpperCase()),
    shownDigitsProblem("cardNumber", cardNumber),
  ];
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

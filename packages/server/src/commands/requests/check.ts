import { currencyDecimals, defaultPaymentType } from "@paybell/contract";
import type { FieldProblem } from "../../errors.ts";
import { completionKind } from "../reports/completion.ts";
import { cardProblems, chipFields, chipProblems } from "./card.ts";
import {
  type CommandRequest,
  type ReversalRequest,
  reqIdField,
  requestFields,
  type SaleRequest,
  type TextField,
} from "./request.ts";
import {
  amountRule,
  broken,
  bytesProblem,
  cardNumberProblem,
  currencyRule,
  delimiterProblem,
  paymentTypeRule,
  type RuleContext,
  reqIdRule,
  textProblem,
} from "./rules.ts";

/**
 * Everything wrong with a command beyond its shape; empty if it can be processed. Never repeats a value. Whether its
 * callBackUrl can be called is checked with the partner's addresses, not here.
 */
export function requestProblems(request: CommandRequest, context: RuleContext): FieldProblem[] {
  return [...textsOf(request).flatMap((text) => textProblems(text, request, context)), ...ruleProblems(request)];
}

interface Text {
  /** A path such as `card.number`. */
  readonly path: string;
  readonly field: TextField;
  readonly value: string;
}

type Values = Readonly<Record<string, unknown>>;

function textsOf(request: CommandRequest): Text[] {
  const values: Values = { ...request };
  return [reqIdField, ...requestFields[request.command]].flatMap((field) => {
    if (field.type === "flag") return [];
    if (field.type === "string") return [textOf(field.name, field, values)];
    const inner = (values[field.name] ?? {}) as Values;
    return field.fields.map((part) => textOf(`${field.name}.${part.name}`, part, inner));
  });
}

function textOf(path: string, field: TextField, values: Values): Text {
  const value = values[field.name];
  return { path, field, value: typeof value === "string" ? value : "" };
}

function textProblems({ path, field, value }: Text, request: CommandRequest, context: RuleContext): FieldProblem[] {
  if (value === "") return field.required ? [broken(path, "missing_field", "is required")] : [];
  const unsendable = textProblem(path, value);
  if (unsendable !== undefined) return [unsendable];
  // A text that its field cannot hold is refused anyway: measured, 64 kB of it kept the card guard busy for 60 ms.
  const exempt = value.length > field.maxLength || chipFields.has(path);
  return found([
    bytesProblem(path, field, value),
    delimiterProblem(path, value, completionKind(request.command), context.signing),
    exempt ? undefined : cardNumberProblem(path, value),
  ]);
}

function ruleProblems(request: CommandRequest): FieldProblem[] {
  return found([reqIdRule("reqId", request.reqId), ...commandProblems(request)]);
}

function commandProblems(request: CommandRequest): (FieldProblem | undefined)[] {
  switch (request.command) {
    case "SALE":
    case "PREAUTH":
      return saleProblems(request);
    case "PREAUTH_COMPLETE":
    case "REFUND":
      return [request.amount === "" ? undefined : amountRule(request.amount, undefined)];
    case "REVERSAL":
      return reversalProblems(request);
    case "VOID":
    case "SETTLEMENT":
    case "LOGON":
    case "BATCH_UPLOAD":
      return [];
  }
}

function saleProblems(request: SaleRequest): (FieldProblem | undefined)[] {
  const { amount, currency, paymentType = "", card } = request;
  const decimals = currencyDecimals(currency);
  return [
    amount === "" ? undefined : amountRule(amount, decimals),
    currencyRule(currency, decimals),
    paymentTypeRule(paymentType),
    ...cardProblems(card, paymentType === "" ? defaultPaymentType : paymentType),
    ...chipProblems(card),
  ];
}

function reversalProblems(request: ReversalRequest): (FieldProblem | undefined)[] {
  const { transactionId = "", originalReqId = "" } = request;
  const neither = transactionId === "" && originalReqId === "";
  const both = transactionId !== "" && originalReqId !== "";
  return [
    neither ? broken("transactionId", "missing_field", "is required, or originalReqId in its place") : undefined,
    both ? broken("originalReqId", "invalid_value", "is not sent together with transactionId") : undefined,
    reqIdRule("originalReqId", originalReqId),
  ];
}

function found(problems: readonly (FieldProblem | undefined)[]): FieldProblem[] {
  return problems.filter((problem) => problem !== undefined);
}

import { cardSchemeFor, currencyDecimals, defaultPaymentType, type Signing } from "@paybell/contract";
import type { FieldProblem } from "../errors.ts";
import type { CardFacts } from "../ipn/facts.ts";
import { formatAmount } from "./amount.ts";
import { type AcquirerOutcome, judge } from "./outcome.ts";
import {
  given,
  type PreAuthCompleteRequest,
  type RefundRequest,
  type SaleRequest,
  type VoidRequest,
} from "./requests/request.ts";
import { amountRule } from "./requests/rules.ts";
import type { TerminalSequence } from "./terminal.ts";

/** The identity of a transaction from its creation. */
export interface TransactionStart {
  readonly id: string;
  readonly atMs: number;
}

/** The facts of a Sale or PreAuth at INIT, before the acquirer is asked. The card's token is not among them. */
export function beginSale(request: SaleRequest, terminal: TerminalSequence, start: TransactionStart): CardFacts {
  const { card } = request;
  const aid = card.aid ?? "";
  return {
    kind: "card",
    command: request.command,
    fields: {
      aid,
      amount: request.amount,
      appName: given(request.appName) ?? terminal.appName,
      approveCode: "",
      batchNo: terminal.batchNo,
      billId: request.billId ?? "",
      cardHolder: card.holder ?? "",
      cardNumber: card.number ?? "",
      cardScheme: given(card.scheme) ?? cardSchemeFor(aid),
      currency: request.currency,
      deviceId: given(request.deviceId) ?? terminal.deviceId,
      expDate: card.expiry ?? "",
      extraData: request.extraData ?? "",
      id: start.id,
      invoiceNo: terminal.invoiceNo,
      isoResponseCode: "",
      merchantAddress: terminal.merchantAddress,
      merchantId: given(terminal.merchantId) ?? request.mid,
      merchantName: terminal.merchantName,
      merchantTransId: request.merchantTransId,
      mid: request.mid,
      paymentType: given(request.paymentType) ?? defaultPaymentType,
      refId: "",
      reqId: request.reqId,
      status: "INIT",
      swipeType: card.swipeType ?? "",
      tc: card.tc ?? "",
      tid: request.tid,
      traceNo: terminal.traceNo,
      transDateTime: new Date(start.atMs).toISOString(),
    },
  };
}

export type FollowUpRequest = VoidRequest | PreAuthCompleteRequest | RefundRequest;

/** What a follow-up may bring itself in place of its original's. */
const givable = ["merchantTransId", "billId", "extraData", "deviceId", "appName"] as const;

/** The terminal of a follow-up, if that is not its original's; deviceId and appName are empty without a registration. */
export type OtherTerminal = { readonly tid: string } & Pick<TerminalSequence, "deviceId" | "appName">;

/**
 * The facts of a Void, PreAuth-Complete or Refund at INIT: its original's fields, except those in its own request and
 * those that are always its own. At another terminal, that one's id and device are among these. An empty string counts
 * as absent. A Void's amount is the voided one's, and a PreAuth's Void is in no batch.
 */
export function beginFollowUp(
  request: FollowUpRequest,
  original: Pick<CardFacts, "command" | "fields">,
  { traceNo, batchNo, invoiceNo }: Pick<TerminalSequence, "traceNo" | "batchNo" | "invoiceNo">,
  start: TransactionStart,
  elsewhere?: OtherTerminal,
): CardFacts {
  const { command, reqId } = request;
  const voidsPreAuth = command === "VOID" && original.command === "PREAUTH";
  const inherited: Record<string, string> = { ...original.fields, ...elsewhere };
  if (invoiceNo !== "") inherited["invoiceNo"] = invoiceNo;
  for (const name of givable) inherited[name] = given(request[name]) ?? inherited[name] ?? "";
  const fields = {
    ...inherited,
    ...(command !== "VOID" && { amount: request.amount }),
    ...(command === "REFUND" && { approveCode: "", tc: "" }),
    id: start.id,
    reqId,
    traceNo,
    batchNo: voidsPreAuth ? "" : batchNo,
    transDateTime: new Date(start.atMs).toISOString(),
    status: "INIT",
    isoResponseCode: "",
    refId: "",
  };
  const originalReqId = (original.fields["reqId"] ?? "").toLowerCase();
  return { kind: "card", command, ...(voidsPreAuth && { voidsPreAuth }), originalReqId, fields };
}

/** Checks the amount again, now that the original's currency is known. */
export function followingAmountProblem(amount: string, currency: string): FieldProblem | undefined {
  return amountRule(amount, currencyDecimals(currency));
}

export interface CompletedCardCommand {
  readonly state: "SUCCESS" | "ERROR";
  readonly facts: CardFacts;
  /** The part of the amount that was approved; undefined: all of it. */
  readonly amountMinor?: bigint;
  /** Whether a Reversal follows. */
  readonly reverse: boolean;
  readonly warnings: readonly FieldProblem[];
}

/**
 * The facts of a card command once its outcome is known: from here on they are frozen. A value that the acquirer leaves
 * out stays as at INIT, where a follow-up has its original's; the approval code only if the command succeeded.
 */
export function completeCard(begun: CardFacts, outcome: AcquirerOutcome, signing: Signing): CompletedCardCommand {
  const { state, isoResponseCode, reverse, answer, warnings, approvedMinor } = judge(outcome, signing);
  const atInit = (name: "approveCode" | "tc") => (answer[name] === "" ? (begun.fields[name] ?? "") : answer[name]);
  const approveCode = state === "SUCCESS" ? atInit("approveCode") : answer.approveCode;
  const { refId } = answer;
  const { currency = "", amount = "" } = begun.fields;
  const part = approvedMinor === undefined ? amount : formatAmount(approvedMinor, currencyDecimals(currency) ?? 0);
  const ended = { status: state, isoResponseCode, approveCode, refId, tc: atInit("tc") };
  const fields = { ...begun.fields, ...ended, amount: part };
  const amountMinor = approvedMinor !== undefined && { amountMinor: approvedMinor };
  return { state, facts: { ...begun, fields }, ...amountMinor, reverse, warnings };
}

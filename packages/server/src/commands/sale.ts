import { cardSchemeFor, defaultPaymentType, type Signing } from "@paybell/contract";
import type { FieldProblem } from "../errors.ts";
import { type AcquirerOutcome, judge } from "./outcome.ts";
import type { SaleRequest } from "./request.ts";

/** The IPN facts of a Sale or PreAuth, by the names of section 2.2. */
export interface SaleFacts {
  readonly kind: "card";
  readonly command: "SALE" | "PREAUTH";
  readonly fields: Readonly<Record<string, string>>;
}

/** The numbers that a terminal assigns to a command, and its registration; empty without one. */
export interface TerminalGives {
  readonly traceNo: string;
  readonly invoiceNo: string;
  readonly batchNo: string;
  readonly merchantId: string;
  readonly merchantName: string;
  readonly merchantAddress: string;
  readonly deviceId: string;
  readonly appName: string;
}

/** The identity of a transaction from its creation. */
export interface TransactionStart {
  readonly id: string;
  readonly atMs: number;
}

export interface CompletedSale {
  readonly state: "SUCCESS" | "ERROR";
  readonly facts: SaleFacts;
  /** Whether a Reversal follows. */
  readonly reverse: boolean;
  readonly warnings: readonly FieldProblem[];
}

/** The facts of a Sale or PreAuth at INIT, before the acquirer is asked. The card's token is not among them. */
export function beginSale(request: SaleRequest, terminal: TerminalGives, start: TransactionStart): SaleFacts {
  const { card } = request;
  const aid = card.aid ?? "";
  return {
    kind: "card",
    command: request.command,
    fields: {
      aid,
      amount: request.amount,
      appName: given(request.appName, terminal.appName),
      approveCode: "",
      batchNo: terminal.batchNo,
      billId: request.billId ?? "",
      cardHolder: card.holder ?? "",
      cardNumber: card.number ?? "",
      cardScheme: given(card.scheme, cardSchemeFor(aid)),
      currency: request.currency,
      deviceId: given(request.deviceId, terminal.deviceId),
      expDate: card.expiry ?? "",
      extraData: request.extraData ?? "",
      id: start.id,
      invoiceNo: terminal.invoiceNo,
      isoResponseCode: "",
      merchantAddress: terminal.merchantAddress,
      merchantId: given(terminal.merchantId, request.mid),
      merchantName: terminal.merchantName,
      merchantTransId: request.merchantTransId,
      mid: request.mid,
      paymentType: given(request.paymentType, defaultPaymentType),
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

/** The facts of the same command once its outcome is known: from here on they are frozen. */
export function completeSale(begun: SaleFacts, outcome: AcquirerOutcome, signing: Signing): CompletedSale {
  const { state, isoResponseCode, reverse, answer, warnings } = judge(outcome, signing);
  const { approveCode, refId } = answer;
  const tc = given(answer.tc, begun.fields["tc"] ?? "");
  const fields = { ...begun.fields, status: state, isoResponseCode, approveCode, refId, tc };
  return { state, facts: { ...begun, fields }, reverse, warnings };
}

/** An empty string counts as absent. */
function given(text: string | undefined, otherwise: string): string {
  return text === undefined || text === "" ? otherwise : text;
}

import { cardSchemeFor, defaultPaymentType } from "@paybell/contract";
import type { CardCommandFacts } from "./complete-card.ts";
import type { SaleRequest } from "./request.ts";
import type { TerminalSequence } from "./terminal.ts";

/** The identity of a transaction from its creation. */
export interface TransactionStart {
  readonly id: string;
  readonly atMs: number;
}

/** The facts of a Sale or PreAuth at INIT, before the acquirer is asked. The card's token is not among them. */
export function beginSale(request: SaleRequest, terminal: TerminalSequence, start: TransactionStart): CardCommandFacts {
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

/** An empty string counts as absent. */
function given(text: string | undefined, otherwise: string): string {
  return text === undefined || text === "" ? otherwise : text;
}

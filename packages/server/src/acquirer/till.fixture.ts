import fc from "fast-check";
import type {
  AcquirerAnswer,
  AuthorisationMessage,
  BatchTotals,
  BatchUploadMessage,
  FollowUpMessage,
  LogonMessage,
  OriginalReference,
  ReversalMessage,
  SettlementMessage,
} from "./acquirer.ts";

export type TillMoneyMessage = AuthorisationMessage | FollowUpMessage;

export const emptyTotals: BatchTotals = {
  currency: "VND",
  saleQuantity: 0,
  saleTotalMinor: 0n,
  voidQuantity: 0,
  voidTotalMinor: 0n,
  refundQuantity: 0,
  refundTotalMinor: 0n,
};

const startMs = Date.UTC(2026, 0, 31, 9, 30);

/** One terminal's messages, numbered as the ledger numbers them. It sends nothing and remembers nothing it sent. */
export class Till {
  readonly mid = "M00000000000001";
  readonly tid: string;
  batchNo = "000001";
  readonly #number: number;
  #messages = 0;

  constructor(number = 1) {
    this.#number = number;
    this.tid = `T${number.toString().padStart(7, "0")}`;
  }

  sale(cardToken: string, amountMinor = 150_000n): AuthorisationMessage {
    return {
      command: "SALE",
      ...this.#header(),
      ...this.#money(amountMinor),
      batchNo: this.batchNo,
      ...card(cardToken),
    };
  }

  preAuth(cardToken: string, amountMinor = 150_000n): AuthorisationMessage {
    return { command: "PREAUTH", ...this.#header(), ...this.#money(amountMinor), batchNo: "", ...card(cardToken) };
  }

  complete(preAuth: TillMoneyMessage, answer: AcquirerAnswer, amountMinor = preAuth.amountMinor): FollowUpMessage {
    const original = referenceTo(preAuth, answer);
    const money = this.#money(amountMinor);
    return { command: "PREAUTH_COMPLETE", ...this.#header(), ...money, batchNo: this.batchNo, original };
  }

  refund(refunded: TillMoneyMessage, answer: AcquirerAnswer, amountMinor = refunded.amountMinor): FollowUpMessage {
    const original = referenceTo(refunded, answer);
    return { command: "REFUND", ...this.#header(), ...this.#money(amountMinor), batchNo: this.batchNo, original };
  }

  void(voided: TillMoneyMessage, answer: AcquirerAnswer): FollowUpMessage {
    const original = referenceTo(voided, answer);
    const batchNo = voided.command === "PREAUTH" ? "" : this.batchNo;
    return { command: "VOID", ...this.#header(), ...this.#money(voided.amountMinor), batchNo, original };
  }

  reversal(reversed: TillMoneyMessage): ReversalMessage {
    const { traceNo, amountMinor, currency, invoiceNo, batchNo } = reversed;
    const original = referenceTo(reversed, { responseCode: "", approveCode: "", refId: "", tc: "" });
    const money = { amountMinor, currency, invoiceNo };
    return { command: "REVERSAL", ...this.#header(), traceNo, ...money, batchNo, original };
  }

  settlement(totals: BatchTotals): SettlementMessage {
    return { command: "SETTLEMENT", ...this.#header(), batchNo: this.batchNo, totals, afterUpload: false };
  }

  /** Follows the upload of its batch: the same totals, as a new message. */
  afterUpload(settlement: SettlementMessage): SettlementMessage {
    return { ...settlement, ...this.#header(), transactionId: settlement.transactionId, afterUpload: true };
  }

  upload(message: TillMoneyMessage, answer: AcquirerAnswer, voided = false): BatchUploadMessage {
    const { command: own } = message;
    const command = own === "PREAUTH_COMPLETE" || own === "REFUND" ? own : "SALE";
    const uploaded = { ...referenceTo(message, answer), command } as const;
    const { batchNo } = this;
    return {
      command: "BATCH_UPLOAD",
      ...this.#header(),
      ...this.#money(message.amountMinor),
      batchNo,
      uploaded,
      voided,
    };
  }

  logon(): LogonMessage {
    return { command: "LOGON", ...this.#header() };
  }

  #header() {
    this.#messages += 1;
    const traceNo = this.#messages.toString().padStart(6, "0");
    const transactionId = `01980000-0000-7000-8${this.#number.toString().padStart(3, "0")}-000000${traceNo}`;
    const atMs = startMs + this.#messages * 1_000;
    return { transactionId, tid: this.tid, mid: this.mid, traceNo, atMs, repeat: false };
  }

  #money(amountMinor: bigint) {
    return { amountMinor, currency: "VND", invoiceNo: this.#messages.toString().padStart(6, "0") };
  }
}

/** The same message, sent again because its answer did not come. */
export function again<Message extends { readonly repeat: boolean }>(message: Message): Message {
  return { ...message, repeat: true };
}

function referenceTo(message: TillMoneyMessage, { approveCode, refId }: AcquirerAnswer): OriginalReference {
  const { transactionId, command, tid, traceNo, atMs } = message;
  return { transactionId, command, tid, traceNo, atMs, approveCode, refId };
}

function card(cardToken: string) {
  return { cardToken, swipeType: "C", expDate: "" };
}

/** A terminal's next step in a random sequence; `at` counts back to the message that it refers to. */
export interface TillStep {
  readonly kind:
    | "sale"
    | "preAuth"
    | "complete"
    | "void"
    | "refund"
    | "reverse"
    | "reverseUnseen"
    | "repeat"
    | "settle";
  readonly till: 0 | 1;
  readonly at: number;
  readonly amountMinor: bigint;
}

/** One arbitrary for each property of a step. Amounts are small, so that they are met again. */
export const tillStep = {
  kind: fc.constantFrom(
    ...(["sale", "sale", "preAuth", "complete", "void", "void", "refund", "refund"] as const),
    ...(["reverse", "reverseUnseen", "repeat", "settle"] as const),
  ),
  till: fc.constantFrom(0, 1),
  at: fc.nat(6),
  amountMinor: fc.bigInt(1n, 5n),
} as const;

import { sampleSale } from "@paybell/contract";
import type { CardFacts, SettlementFacts } from "../ipn/facts.ts";

export interface TestValues {
  readonly transactionId: string;
  readonly reqId: string;
  readonly at: Date;
}

const testNote = { test: true, note: "A test notification: no card was charged." };

/**
 * A fictitious Sale with every field of section 2.2 that a Sale has, for a partner that tests a callback. Its amount is
 * the minimum, and merchantTransId and extraData say that it is a test, in case it is booked by mistake.
 */
export function testSale({ transactionId, reqId, at }: TestValues): CardFacts {
  return {
    kind: "card",
    command: "SALE",
    fields: {
      ...sampleSale,
      amount: "1",
      appName: "Paybell",
      approveCode: "000000",
      billId: "TEST",
      cardHolder: "TEST CARD",
      deviceId: "TEST",
      extraData: JSON.stringify(testNote),
      id: transactionId,
      merchantId: "TEST",
      merchantName: "Test notification",
      merchantTransId: `TEST-${transactionId}`,
      mid: "TEST",
      refId: "000000000000",
      reqId,
      tid: "TEST",
      transDateTime: at.toISOString(),
    },
  };
}

/** The same for a settlement: of an empty batch. */
export function testSettlement({ transactionId, reqId, at }: TestValues): SettlementFacts {
  return {
    kind: "settlement",
    command: "SETTLEMENT",
    currency: "VND",
    fields: {
      batchNo: "000000",
      deviceId: "TEST",
      extraData: JSON.stringify(testNote),
      id: transactionId,
      merchantTransId: `TEST-${transactionId}`,
      mid: "TEST",
      quantity: "0",
      reqId,
      saleQuantity: "0",
      saleTotalAmount: "0",
      status: "SUCCESS",
      tid: "TEST",
      transaction_time: at.toISOString(),
      voidQuantity: "0",
      voidTotalAmount: "0",
    },
    settlementList: [],
  };
}

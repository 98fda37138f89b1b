import type { CardFacts } from "../ipn/facts.ts";

/** The values of a test notification. */
export interface SampleSale {
  readonly transactionId: string;
  readonly reqId: string;
  readonly at: Date;
}

/**
 * A fictitious Sale with every field of section 2.2 that a Sale has, for a partner that tests a callback. Its amount is
 * the minimum, and merchantTransId and extraData say that it is a test, in case it is booked by mistake.
 */
export function sampleSale({ transactionId, reqId, at }: SampleSale): CardFacts {
  return {
    kind: "card",
    command: "SALE",
    fields: {
      aid: "A0000000031010",
      amount: "1",
      appName: "Paybell",
      approveCode: "000000",
      batchNo: "000001",
      billId: "TEST",
      cardHolder: "TEST CARD",
      cardNumber: "411111******1111",
      cardScheme: "VISA",
      currency: "VND",
      deviceId: "TEST",
      extraData: JSON.stringify({ test: true, note: "A test notification: no card was charged." }),
      id: transactionId,
      invoiceNo: "000001",
      isoResponseCode: "00",
      merchantId: "TEST",
      merchantName: "Test notification",
      merchantTransId: `TEST-${transactionId}`,
      mid: "TEST",
      paymentType: "card",
      refId: "000000000000",
      reqId,
      status: "SUCCESS",
      swipeType: "C",
      tid: "TEST",
      traceNo: "000001",
      transDateTime: at.toISOString(),
    },
  };
}

import type { CardFacts } from "../ipn/facts.ts";

/** What a test notification is made of. */
export interface SampleSale {
  readonly transactionId: string;
  readonly reqId: string;
  readonly at: Date;
}

/**
 * A Sale that never was, with every field of section 2.2 that a Sale has: for a partner who tries out a callback.
 * The amount is the smallest there is, and merchantTransId and extraData say what it is, in case it is booked by
 * mistake.
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

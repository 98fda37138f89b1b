import type { CardIpn } from "./columns.ts";

/** A plausible Sale on a test card, by the table's names: the fields that are alike in every sample card IPN. */
export const sampleSale = {
  aid: "A0000000031010",
  batchNo: "000001",
  cardNumber: "411111******1111",
  cardScheme: "VISA",
  currency: "VND",
  invoiceNo: "000001",
  isoResponseCode: "00",
  paymentType: "card",
  status: "SUCCESS",
  swipeType: "C",
  traceNo: "000001",
} as const satisfies Partial<CardIpn>;

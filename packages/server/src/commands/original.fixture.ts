import { cardIpnFields } from "@paybell/contract";
import type { OriginalState } from "./states.ts";

export const preAuthDays = 30;
export const dayMs = 86_400_000;

/** A Sale of 100.00 USD that succeeded, in an open batch. */
export const approvedSale: OriginalState = {
  id: "01980000-0000-7000-8000-000000000001",
  command: "SALE",
  state: "SUCCESS",
  origin: "command",
  successor: null,
  reversal: null,
  batch: "open",
  amountMinor: 10_000n,
  refundedMinor: 0n,
  currency: "USD",
  createdAtMs: 0,
};

export const approvedPreAuth: OriginalState = { ...approvedSale, command: "PREAUTH", batch: "none" };

/** Every field of a successful original's IPN facts, with its own name as the value. */
export const originalFields: Readonly<Record<string, string>> = {
  ...Object.fromEntries(
    cardIpnFields
      .filter(({ name }) => name !== "transaction_type" && name !== "signature")
      .map(({ name }) => [name, `original ${name}`]),
  ),
  amount: "100.00",
  currency: "USD",
};

export const reqId = "8F14E45F-ceea-467f-a8a6-3c7a0e2ab111";
export const start = { id: "01980000-0000-7000-8000-000000000002", atMs: Date.parse("2026-11-21T01:02:03.456Z") };
export const numbers = { traceNo: "000043", batchNo: "000008", invoiceNo: "" };
export const answer = { responseCode: "00", approveCode: "A1B2C3", refId: "123456789012", tc: "HOSTTC" };
export const approvals: ReadonlySet<string> = new Set(["00", "10"]);

import type { OriginalState } from "./transaction-status.ts";

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

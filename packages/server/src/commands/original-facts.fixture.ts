import { cardIpnFields } from "@paybell/contract";

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

export const reqId = "8f14e45f-ceea-467f-a8a6-3c7a0e2ab111";
export const start = { id: "01980000-0000-7000-8000-000000000002", atMs: Date.parse("2026-11-21T01:02:03.456Z") };
export const numbers = { traceNo: "000043", batchNo: "000008", invoiceNo: "" };
export const answer = { responseCode: "00", approveCode: "A1B2C3", refId: "123456789012", tc: "HOSTTC" };
export const approvals: ReadonlySet<string> = new Set(["00", "10"]);

import { expect, test } from "vitest";
import type { SettlementDetail } from "../api/operations.ts";
import { outcomeOf } from "./settlement-page.tsx";

const totals = { saleQuantity: 2, saleTotalMinor: "300", voidQuantity: 1, voidTotalMinor: "100" };
const counted = { ...totals, refundQuantity: 0, refundTotalMinor: "0" };
const settled = { state: "settled", origin: "command", acceptedLate: null, isoResponseCode: "00", totals: counted };

test.each<[more: object, tone: string, words: string]>([
  [{ acquirerTotals: null }, "good", "Settled: the acquirer agreed with the totals"],
  [{ acquirerTotals: counted }, "good", "Settled: the acquirer agreed with the totals"],
  [{ acquirerTotals: { ...counted, refundQuantity: null } }, "good", "Settled: the acquirer agreed with the totals"],
  [
    { acquirerTotals: { ...counted, voidTotalMinor: "101" } },
    ...(["good", "Settled by the uploaded batch: the acquirer had counted otherwise"] as const),
  ],
  [{ origin: "switch", acquirerTotals: null }, "good", "Settled, as the switch reported"],
  [
    { state: "refused", isoResponseCode: "95" },
    ...(["bad", "Not settled: 95 Reconcile error; its batch is open again"] as const),
  ],
  [{ state: "waiting" }, "wait", "Waits for running commands"],
  [{ state: "sending" }, "wait", "Sent: the acquirer has not answered"],
  [{ state: "uploading" }, "wait", "Totals differ: its batch is uploaded"],
  [
    { state: "refused", acceptedLate: "closed" },
    ...(["wait", "The acquirer settled it after it was aborted: the next Settlement reports it"] as const),
  ],
  [
    { state: "refused", acceptedLate: "in_doubt" },
    ...(["bad", "In doubt: the acquirer settled it after it was aborted, and its batch has changed"] as const),
  ],
])("of a settlement with %j the outcome is told: %s, %s", (more, tone, word) => {
  expect(outcomeOf({ ...settled, ...more } as unknown as SettlementDetail)).toEqual({ tone, word });
});

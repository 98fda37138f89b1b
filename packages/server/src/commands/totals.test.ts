import { commands } from "@paybell/contract";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type BatchRow, isCounted, settlementTotals } from "./totals.ts";

const sale: BatchRow = { command: "SALE", state: "SUCCESS", amountMinor: 100n, voided: false, reversed: false };
const rows = fc.array(
  fc.record({
    command: fc.constantFrom(...commands),
    state: fc.constantFrom("INIT", "SUCCESS", "ERROR"),
    // Far beyond what a number holds exactly.
    amountMinor: fc.bigInt({ min: 1n, max: 10n ** 30n }),
    voided: fc.boolean(),
    reversed: fc.boolean(),
  } satisfies Record<keyof BatchRow, unknown>),
);
const sum = (of: readonly BatchRow[]) => of.reduce((total, { amountMinor }) => total + amountMinor, 0n);

describe("a batch's totals", () => {
  test("count a voided one on both sides, and a Void not by itself", () => {
    const batch: BatchRow[] = [
      sale,
      { ...sale, voided: true, amountMinor: 30n },
      { ...sale, command: "VOID", amountMinor: 30n },
      { ...sale, command: "PREAUTH_COMPLETE", amountMinor: 7n },
    ];
    expect(settlementTotals(batch, "USD")).toEqual({
      currency: "USD",
      saleQuantity: 3,
      saleTotalMinor: 137n,
      voidQuantity: 1,
      voidTotalMinor: 30n,
    });
  });

  test.each<[string, Partial<BatchRow>]>([
    ["declined", { state: "ERROR" }],
    ["in flight", { state: "INIT" }],
    ["reversed", { reversed: true }],
    ["reversed after it was voided", { reversed: true, voided: true }],
    ["a PreAuth that was not completed", { command: "PREAUTH" }],
  ])("do not count what is %s", (_, change) => {
    expect(settlementTotals([{ ...sale, ...change }], "USD")).toEqual({
      currency: "",
      saleQuantity: 0,
      saleTotalMinor: 0n,
      voidQuantity: 0,
      voidTotalMinor: 0n,
    });
  });

  test("are exact, whatever is in the batch and in whatever order", () => {
    fc.assert(
      fc.property(rows, (batch) => {
        const kinds = ["SALE", "PREAUTH_COMPLETE"];
        const counted = batch.filter((row) => kinds.includes(row.command) && row.state === "SUCCESS" && !row.reversed);
        const voids = counted.filter(({ voided }) => voided);
        const totals = settlementTotals(batch, "VND");
        expect(totals).toMatchObject({ saleQuantity: counted.length, voidQuantity: voids.length });
        expect(totals.saleTotalMinor).toBe(sum(counted));
        expect(totals.voidTotalMinor).toBe(sum(voids));
        expect(settlementTotals(batch.toReversed(), "VND")).toEqual(totals);
      }),
    );
  });

  test("less their Voids are what stands", () => {
    fc.assert(
      fc.property(rows, (batch) => {
        const { saleQuantity, voidQuantity, saleTotalMinor, voidTotalMinor } = settlementTotals(batch, "VND");
        const standing = batch.filter(isCounted);
        expect(saleQuantity - voidQuantity).toBe(standing.length);
        expect(saleTotalMinor - voidTotalMinor).toBe(sum(standing));
      }),
    );
  });
});

import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { totalAmount } from "./total.ts";

describe("totalAmount", () => {
  test.each([
    ["100.50", "20.25", "sum", "120.75"],
    ["100.50", "20.25", "net", "80.25"],
    ["150000", "50000", "sum", "200000"],
    ["150000", "50000", "net", "100000"],
    ["0.10", "0.20", "sum", "0.30"],
    ["10", "0.5", "sum", "10.5"],
    ["0.00", "0.00", "sum", "0.00"],
    ["5.00", "7.00", "net", "-2.00"],
    ["0.00", "0.05", "net", "-0.05"],
    ["9007199254740993", "1", "sum", "9007199254740994"],
  ] as const)("of %s and %s, %s, is %s", (sales, voids, which, total) => {
    expect(totalAmount(sales, voids, which)).toBe(total);
  });

  test.each(["", "abc", "1,000.00", "1e3", " 1", "1.", ".5"])(
    "is empty when a total is %j: none is better than a wrong one",
    (bad) => {
      expect(totalAmount(bad, "1.00", "sum")).toBe("");
      expect(totalAmount("1.00", bad, "net")).toBe("");
    },
  );

  test("is exact for any amounts", () => {
    const cents = fc.bigInt({ min: 0n, max: 10n ** 30n });
    const text = (minor: bigint) => minor.toString().padStart(3, "0").replace(/(..)$/, ".$1");
    fc.assert(
      fc.property(cents, cents, (sales, voids) => {
        expect(totalAmount(text(sales), text(voids), "sum")).toBe(text(sales + voids));
        if (sales >= voids) expect(totalAmount(text(sales), text(voids), "net")).toBe(text(sales - voids));
      }),
    );
  });
});

import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { amountProblem, formatAmount, minorOf, parseAmount } from "./amount.ts";

describe("an amount", () => {
  test.each([
    ["150000", 0, 150_000n],
    ["12.50", 2, 1_250n],
    ["12.5", 2, 1_250n],
    ["12", 2, 1_200n],
    ["0.01", 2, 1n],
    ["0.001", 3, 1n],
    ["999999999999", 0, 999_999_999_999n],
    ["9999999999.99", 2, 999_999_999_999n],
  ])("%s with %i decimals is %i of the smallest unit", (text, decimals, minor) => {
    expect(amountProblem(text, decimals)).toBeUndefined();
    expect(parseAmount(text, decimals)).toBe(minor);
  });

  test.each([
    ["", 2],
    ["-1", 2],
    ["+1", 2],
    ["01", 2],
    ["1.", 2],
    [".5", 2],
    ["1,50", 2],
    ["1 000", 2],
    ["1e3", 2],
    ["0x10", 2],
    ["١٢", 2],
    ["1.5\n", 2],
    ["0", 2],
    ["0.00", 2],
    ["1.5", 0],
    ["1.0", 0],
    ["1.234", 2],
    ["1000000000000", 0],
    ["10000000000.00", 2],
    ["10000000000", 2],
  ])("%j is none with %i decimals", (text, decimals) => {
    expect(amountProblem(text, decimals)).toBeTypeOf("string");
    expect(() => parseAmount(text, decimals)).toThrow(RangeError);
  });

  test("of a currency that is not known here may have four decimals", () => {
    expect(amountProblem("1.2345", undefined)).toBeUndefined();
    expect(amountProblem("1.23456", undefined)).toBeDefined();
    expect(amountProblem("150000", undefined)).toBeUndefined();
  });
});

describe("a sum", () => {
  test.each([
    ["123456789012345678", 0, 123_456_789_012_345_678n],
    ["0", 2, 0n],
    ["1234567890123456789", 0, undefined],
    ["1.234", 2, undefined],
  ])("%s with %i decimals is %s of the smallest unit", (text, decimals, minor) => {
    expect(minorOf(text, decimals)).toBe(minor);
  });

  test.each([
    [0n, 2, "0.00"],
    [5n, 2, "0.05"],
    [1_250n, 2, "12.50"],
    [-5n, 2, "-0.05"],
    [150_000n, 0, "150000"],
    [0n, 0, "0"],
    [1n, 3, "0.001"],
  ])("of %i with %i decimals is written %s", (minor, decimals, text) => {
    expect(formatAmount(minor, decimals)).toBe(text);
  });

  test("is read back as what was written, and adds up exactly", () => {
    const minors = fc.bigInt({ min: 1n, max: 10n ** 12n - 1n });
    fc.assert(
      fc.property(minors, fc.integer({ min: 0, max: 4 }), (minor, decimals) => {
        const text = formatAmount(minor, decimals);
        expect(amountProblem(text, decimals)).toBeUndefined();
        expect(parseAmount(text, decimals)).toBe(minor);
      }),
    );
    const cents = Array.from({ length: 1_000 }, () => parseAmount("0.10", 2));
    expect(
      formatAmount(
        cents.reduce((sum, one) => sum + one, 0n),
        2,
      ),
    ).toBe("100.00");
  });
});

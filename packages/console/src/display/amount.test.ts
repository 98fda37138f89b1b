import { expect, test } from "vitest";
import { shownAmount, shownMinor } from "./amount.ts";

test.each([
  ["0", "VND", "0 VND"],
  ["1234567", "VND", "1,234,567 VND"],
  ["5", "USD", "0.05 USD"],
  ["50", "USD", "0.50 USD"],
  ["123456", "USD", "1,234.56 USD"],
  ["7", "KWD", "0.007 KWD"],
  ["12", null, "12"],
])("%s in the smallest unit of %s is %s", (minor, currency, shown) => {
  expect(shownMinor(minor, currency)).toBe(shown);
});

test.each([
  ["150000", "VND", "150,000 VND"],
  ["1234.5", "USD", "1,234.50 USD"],
  ["-1000", "USD", "-1,000.00 USD"],
  ["1000.25", "", "1,000.25"],
  ["", "USD", ""],
  [null, "USD", ""],
])("the amount %j of %j is shown as %j", (amount, currency, shown) => {
  expect(shownAmount(amount, currency)).toBe(shown);
});

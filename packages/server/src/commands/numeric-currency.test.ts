import { currencies } from "@paybell/contract";
import { expect, test } from "vitest";
import { currencyOfNumber } from "./numeric-currency.ts";

const numbers = Array.from({ length: 1_000 }, (_, number) => String(number).padStart(3, "0"));

test("every currency of the contract has one number of ISO 4217, and no number has a currency beyond it", () => {
  const found = numbers.flatMap((number) => currencyOfNumber(number) ?? []);
  expect(found.sort()).toEqual([...currencies.keys()].sort());
});

test.each([
  ["704", "VND"],
  ["840", "USD"],
  ["978", "EUR"],
  ["392", "JPY"],
  ["036", "AUD"],
  ["36", undefined],
  ["VND", undefined],
  ["999", undefined],
])("%s is %s", (number, currency) => {
  expect(currencyOfNumber(number)).toBe(currency);
});

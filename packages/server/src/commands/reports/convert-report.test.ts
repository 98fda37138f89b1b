import { currencies } from "@paybell/contract";
import { describe, expect, test } from "vitest";
import type { CompletionRequest } from "./completion.ts";
import { convertReport, currencyOfNumber, type ReportFormat } from "./convert-report.ts";

const plain: ReportFormat = { amounts: "major", responseCodes: "1987", schemes: {} };
const sale = { partnerId: "p", externalId: "SW-1", command: "SALE", status: "SUCCESS" } as const;
const agreed = (given: Partial<CompletionRequest>, agreement: Partial<ReportFormat> = {}) => {
  const { partnerId, externalId, command, status, ...mapped } = convertReport(
    { ...sale, ...given },
    { ...plain, ...agreement },
  );
  return mapped;
};

describe("without an agreement, a report's", () => {
  test.each<[string, Partial<CompletionRequest>, Partial<CompletionRequest>]>([
    ["numeric currency is its code", { currency: "704" }, { currency: "VND" }],
    ["unknown number stays", { currency: "705" }, { currency: "705" }],
    ["zero decimals beyond the currency's go", { amount: "150000.00", currency: "704" }, { amount: "150000" }],
    ["decimals of the currency stay", { amount: "12.50", currency: "USD" }, { amount: "12.50" }],
    ["third zero goes", { amount: "12.500", currency: "USD" }, { amount: "12.50" }],
    ["decimals that say something stay", { amount: "150000.50", currency: "VND" }, { amount: "150000.50" }],
    ["amount without a currency stays", { amount: "1.00" }, { amount: "1.00" }],
    ["leap second is the one before", { transDateTime: "20261231235960" }, { transDateTime: "20261231235959" }],
    [
      "leap second of an instant too",
      { transaction_time: "2026-12-31T23:59:60Z" },
      { transaction_time: "2026-12-31T23:59:59Z" },
    ],
    ["other times stay", { transDateTime: "20261231236059" }, { transDateTime: "20261231236059" }],
    ["scheme is written as in the table", { cardScheme: "Visa" }, { cardScheme: "VISA" }],
    ["scheme by another name is the table's", { cardScheme: "Master Card" }, { cardScheme: "MASTER" }],
    ["UnionPay is UPI", { cardScheme: "UnionPay" }, { cardScheme: "UPI" }],
    ["scheme beyond the table is empty", { cardScheme: "NAPAS" }, { cardScheme: "" }],
    ["name of every object is no scheme", { cardScheme: "constructor" }, { cardScheme: "" }],
    ["action code stays", { isoResponseCode: "116" }, { isoResponseCode: "116" }],
    ["empty values stay empty", { currency: "", amount: "", cardScheme: "" }, { currency: "", amount: "" }],
  ])("%s", (_, given, expected) => {
    expect(agreed(given)).toMatchObject(expected);
  });

  test("absent values stay absent", () => {
    expect(agreed({})).toEqual({});
  });
});

describe("as agreed,", () => {
  test.each<[string, Partial<ReportFormat>, Partial<CompletionRequest>, Partial<CompletionRequest>]>([
    ["of an unknown currency they stay", { amounts: "minor" }, { amount: "1250", currency: "705" }, { amount: "1250" }],
    ["amounts are minor units", { amounts: "minor" }, { amount: "1250", currency: "840" }, { amount: "12.50" }],
    ["zeros in front go", { amounts: "minor" }, { amount: "000000150000", currency: "VND" }, { amount: "150000" }],
    ["a zero is one", { amounts: "minor" }, { amount: "000", currency: "USD" }, { amount: "0.00" }],
    [
      "totals are minor units",
      { amounts: "minor" },
      { saleTotalAmount: "300", voidTotalAmount: "0", totalAmount: "300", currency: "USD" },
      { saleTotalAmount: "3.00", voidTotalAmount: "0.00", totalAmount: "3.00" },
    ],
    [
      "schemes have the agreed names",
      { schemes: { NAPAS: "NAPAS" } },
      { cardScheme: "Napas" },
      { cardScheme: "NAPAS" },
    ],
    ["a scheme may stand for one", { schemes: { DC: "JCB" } }, { cardScheme: "DC" }, { cardScheme: "JCB" }],
    ["000 is 00", { responseCodes: "1993" }, { isoResponseCode: "000" }, { isoResponseCode: "00" }],
    ["116 is 51", { responseCodes: "1993" }, { isoResponseCode: "116" }, { isoResponseCode: "51" }],
    ["a code of two digits stays", { responseCodes: "1993" }, { isoResponseCode: "05" }, { isoResponseCode: "05" }],
    ["an unknown one stays", { responseCodes: "1993" }, { isoResponseCode: "777" }, { isoResponseCode: "777" }],
  ])("%s", (_, agreement, given, expected) => {
    expect(agreed(given, agreement)).toMatchObject(expected);
  });
});

describe("numeric currency", () => {
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
});

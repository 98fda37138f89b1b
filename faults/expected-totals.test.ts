import { expect, test } from "vitest";
import { ExpectedTotals } from "./expected-totals.ts";
import { amountOf } from "./journal.ts";
import { cardIpn, settlementIpn } from "./received.fixture.ts";

function ofTwoSales(): ExpectedTotals {
  const books = new ExpectedTotals();
  for (const no of [1, 2, 3]) books.enter(0, cardIpn(no), undefined);
  books.enter(0, cardIpn(4, { command: "VOID", amount: String(amountOf(2)) }), 2);
  return books;
}

test("a settlement that equals its IPNs has no differences", () => {
  const books = ofTwoSales();
  books.enter(0, settlementIpn(9, [1, 2, 3], [2]), undefined);
  expect(books.differences()).toEqual([]);
  expect(books.settled).toBe(1);
});

test("a settlement that leaves out a Sale, or lists a voided one, differs in counts, sums and list", () => {
  const short = ofTwoSales();
  short.enter(0, settlementIpn(9, [1, 2], [2]), undefined);
  expect(short.differences().join("\n")).toMatch(/saleQuantity is 2.*3[\s\S]*f-3 stands and is not listed/);
  const long = ofTwoSales();
  long.enter(0, settlementIpn(9, [1, 2, 3], []), undefined);
  expect(long.differences().join("\n")).toMatch(/voidQuantity is 0.*1[\s\S]*f-2 is listed and does not stand/);
});

test("a PreAuth is in no batch, and another terminal's Sale is in another one", () => {
  const books = ofTwoSales();
  books.enter(0, cardIpn(5, { command: "PREAUTH" }), undefined);
  books.enter(1, cardIpn(6), undefined);
  books.enter(0, settlementIpn(9, [1, 2, 3], [2]), undefined);
  expect(books.differences()).toEqual([]);
});

test("a reversed transaction is in no total and no list", () => {
  const books = ofTwoSales();
  books.reverse(3);
  books.enter(0, settlementIpn(9, [1, 2], [2]), undefined);
  expect(books.differences()).toEqual([]);
});

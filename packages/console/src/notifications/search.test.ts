import { expect, onTestFinished, test, vi } from "vitest";
import { searchOf, timeOfId } from "./search.ts";

const given = (search: object) => Object.fromEntries(Object.entries(search).filter(([, value]) => value !== undefined));
const of = (query: string) => given(searchOf(new URLSearchParams(query)));

test("the search in the address is the one that is asked for, without words that no list has", () => {
  const texts = { q: "o-1", contains: "o", amountFrom: "1", amountTo: "2.50", refId: "r", approveCode: "a" };
  const more = { lastFour: "1111", billId: "b", tid: "T1", mid: "M1", partner: "p", reason: "tls", to: "2026-11-23" };
  const words = { state: "parked", command: "VOID", result: "declined", from: "2026-11-22" };
  const all = { ...texts, ...more, ...words };
  expect(of(new URLSearchParams(all).toString())).toEqual(all);
  expect(of("q=%20o-1%20&tid=%20&state=lost&command=LOGON&result=maybe&span=9d")).toEqual({ q: "o-1" });
});

test.each([
  ["1h", "2026-11-22T11:30:00.000Z"],
  ["24h", "2026-11-21T12:30:00.000Z"],
  ["7d", "2026-11-15T12:30:00.000Z"],
])("the last %s begin at a whole minute, unless the address has a time", (span, from) => {
  vi.useFakeTimers({ now: Date.parse("2026-11-22T12:30:59.999Z"), toFake: ["Date"] });
  onTestFinished(() => void vi.useRealTimers());
  expect(of(`span=${span}`)).toEqual({ from });
  expect(of(`span=${span}&from=2026-01-01`)).toEqual({ from: "2026-01-01" });
});

test("an id begins with its time", () => {
  expect(timeOfId("019f3b1e-7c1a-7d2e-9b1a-3f6d2c5e8a03")).toBe(new Date(0x019f3b1e7c1a).toISOString());
});

import { InvalidArgumentError } from "@commander-js/extra-typings";
import { expect, test } from "vitest";
import { readDay, timeReader, wholeNumber } from "./options.ts";

const readTime = timeReader({ nowMs: () => Date.parse("2026-11-25T12:00:00.000Z") });

test.each([
  ["2026-11-21", "2026-11-21T00:00:00.000Z"],
  ["2026-11-21T08:00Z", "2026-11-21T08:00:00.000Z"],
  ["2026-11-21T08:00:00.250+01:00", "2026-11-21T07:00:00.250Z"],
  ["45s", "2026-11-25T11:59:15.000Z"],
  ["30m", "2026-11-25T11:30:00.000Z"],
  ["1h", "2026-11-25T11:00:00.000Z"],
  ["2d", "2026-11-23T12:00:00.000Z"],
  ["1w", "2026-11-18T12:00:00.000Z"],
])("%s is a time", (text, time) => {
  expect(readTime(text)).toBe(time);
});

// JavaScript reads the first four as times of 2001: everything since then would be sent again.
test.each([
  ...["11-22", "1", "order-7", "nov", "2026", "2026-11-21 08:00", "2026-11-21T08:00:00", "2026-13-01", ""],
  // And these for days of March and July.
  ...["2026-02-30", "2026-06-31T08:00:00Z"],
  ...["1y", "h", "-1h", "1.5h", "1h30m", "999999w"],
])("%j is refused", (text) => {
  expect(() => readTime(text)).toThrow(InvalidArgumentError);
});

test("a day is one of the calendar", () => {
  expect(readDay("2028-02-29")).toBe("2028-02-29");
  for (const none of ["2026-02-29", "2026-11-31", "2026-1-1", "today"])
    expect(() => readDay(none)).toThrow(InvalidArgumentError);
});

test.each(["4", "11", "1e1", "0x7", "07", " 7", "7.0", "", "seven"])("%j is no whole number from 5 to 10", (text) => {
  expect(wholeNumber(5, 10)("7")).toBe(7);
  expect(() => wholeNumber(5, 10)(text)).toThrow(InvalidArgumentError);
});

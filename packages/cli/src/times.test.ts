import { InvalidArgumentError } from "commander";
import { expect, test } from "vitest";
import { readTime } from "./times.ts";

test.each([
  ["2026-11-21", "2026-11-21T00:00:00.000Z"],
  ["2026-11-21T08:00Z", "2026-11-21T08:00:00.000Z"],
  ["2026-11-21T08:00:00.250+01:00", "2026-11-21T07:00:00.250Z"],
])("%s is a time", (text, time) => {
  expect(readTime(text)).toBe(time);
});

// JavaScript reads the first four as times of 2001: everything since then would be sent again.
test.each(["11-22", "1", "order-7", "nov", "2026", "2026-11-21 08:00", "2026-11-21T08:00:00", "2026-13-01", ""])(
  "%j is refused",
  (text) => {
    expect(() => readTime(text)).toThrow(InvalidArgumentError);
  },
);

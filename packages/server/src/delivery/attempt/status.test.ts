import { describe, expect, test } from "vitest";
import { readRetryAfterMs, statusFailure } from "./status.ts";

describe("a status", () => {
  test.each([200, 201, 202, 204, 299])("%i is acceptance", (status) => {
    expect(statusFailure(status)).toBeUndefined();
  });

  test.each([
    [301, "redirect"],
    [304, "redirect"],
    [308, "redirect"],
    [400, "status"],
    [404, "status"],
    [410, "gone"],
    [413, "too_large"],
    [429, "rate_limited"],
    [500, "status"],
    [503, "status"],
  ])("%i is the failure %s, and its words name it", (status, reason) => {
    expect(statusFailure(status)).toEqual({ reason, detail: expect.stringContaining(String(status)) });
  });
});

describe("Retry-After", () => {
  const nowMs = Date.UTC(2026, 0, 1);

  test.each([
    ["0", 0],
    ["120", 120_000],
    [" 7 ", 7_000],
    ["Thu, 01 Jan 2026 00:01:00 GMT", 60_000],
    ["Thursday, 01-Jan-26 00:01:00 GMT", 60_000],
    ["Wed, 31 Dec 2025 00:00:00 GMT", 0],
    ["-5", undefined],
    ["1.5", undefined],
    ["2026", 2_026_000],
    ["1767225600000", 1_767_225_600_000_000],
    ["2026-01-01", undefined],
    ["soon", undefined],
    ["", undefined],
  ])("%j is %s ms", (value, expected) => {
    expect(readRetryAfterMs(value, nowMs)).toBe(expected);
  });
});

import { describe, expect, onTestFinished, test } from "vitest";
import { duration, localInput, momentOfInput, shownTime } from "./time.tsx";

describe("a duration", () => {
  test.each([
    [38, "38 ms"],
    [1_500, "1.5 s"],
    [59_000, "59 s"],
    [156_000, "2 min 36 s"],
    [3_600_000, "1 h"],
    [5_400_000, "1 h 30 min"],
    [3 * 86_400_000, "3 days"],
  ])("of %i ms is %s", (ms, text) => {
    expect(duration(ms)).toBe(text);
  });
});

test("a time is relative within the hour, and has its own day beyond today", () => {
  // By the clock of this machine, whatever its zone.
  const now = new Date(2026, 10, 22, 12).getTime();
  expect(shownTime(now - 40_000, now)).toBe("40 s ago");
  expect(shownTime(now + 130_000, now)).toBe("in 2 min");
  expect(shownTime(now - 2 * 3_600_000, now)).toMatch(/^\d\d:00:00$/);
  expect(shownTime(now - 86_400_000, now)).toMatch(/21.* \d\d:00:00$/);
});

test("a moment is typed in the viewer's zone, and sent in UTC", () => {
  const { TZ } = process.env;
  process.env["TZ"] = "Asia/Ho_Chi_Minh";
  onTestFinished(() => {
    if (TZ === undefined) delete process.env["TZ"];
    else process.env["TZ"] = TZ;
  });
  expect(localInput("2026-11-22T20:30:00.000Z")).toBe("2026-11-23T03:30");
  expect(momentOfInput("2026-11-23T03:30")).toBe("2026-11-22T20:30:00.000Z");
  expect([localInput(null), momentOfInput("")]).toEqual(["", null]);
});

test("a time of another year has its year, whether it is past or to come", () => {
  const now = Date.UTC(2026, 10, 22, 12);
  expect(shownTime(now - 86_400_000, now)).not.toContain("2026");
  expect(shownTime(Date.UTC(2027, 10, 22, 12), now)).toContain("2027");
  expect(shownTime(Date.UTC(2027, 1, 21, 12), now)).toContain("2027");
  expect(shownTime(Date.UTC(2025, 11, 3, 12), now)).toContain("2025");
});

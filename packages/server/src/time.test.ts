import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { isAfter, utcTimestamp, zoneFormat } from "./time.ts";

const at = (iso: string) => Date.parse(iso);

describe("a time in a partner's zone", () => {
  test.each([
    ["UTC", "2026-01-02T03:04:05.999Z", "20260102030405"],
    ["Asia/Ho_Chi_Minh", "2026-01-02T03:04:05Z", "20260102100405"],
    ["Asia/Ho_Chi_Minh", "2026-12-31T17:00:00Z", "20270101000000"],
    ["Asia/Kathmandu", "2026-01-02T18:15:00Z", "20260103000000"],
    ["America/New_York", "2026-01-01T04:59:59Z", "20251231235959"],
    ["UTC", "2026-01-01T00:00:00Z", "20260101000000"],
  ])("%s at %s is %s", (zone, instant, digits) => {
    expect(zoneFormat(zone)(at(instant))).toBe(digits);
  });

  test("jumps and falls back with daylight saving, to the second", () => {
    const berlin = zoneFormat("Europe/Berlin");
    expect(berlin(at("2026-03-29T00:59:59Z"))).toBe("20260329015959");
    expect(berlin(at("2026-03-29T01:00:00Z"))).toBe("20260329030000");
    expect(berlin(at("2026-10-25T00:59:59Z"))).toBe("20261025025959");
    expect(berlin(at("2026-10-25T01:00:00Z"))).toBe("20261025020000");
    expect(berlin(at("2026-10-25T00:59:59Z"))).toBe("20261025025959");
  });

  test("changes its offset within an hour of UTC too", () => {
    const island = zoneFormat("Australia/Lord_Howe");
    expect(island(at("2026-10-03T15:29:59Z"))).toBe("20261004015959");
    expect(island(at("2026-10-03T15:30:00Z"))).toBe("20261004023000");
  });

  test("is refused for a zone that does not exist", () => {
    expect(() => zoneFormat("Mars/Olympus")).toThrow(RangeError);
  });

  test("agrees with the calendar of UTC whatever was asked before", () => {
    const utc = zoneFormat("UTC");
    const instants = fc.date({ min: new Date("1970-01-01Z"), max: new Date("2199-12-31Z"), noInvalidDate: true });
    fc.assert(
      fc.property(instants, (instant) => {
        expect(utc(instant.getTime())).toBe(instant.toISOString().replace(/\D/g, "").slice(0, 14));
      }),
    );
  });
});

test("a UTC timestamp has no fraction, as in the specification's sample", () => {
  expect(utcTimestamp(at("2026-01-02T03:04:05.678Z"))).toBe("2026-01-02T03:04:05Z");
});

test.each([
  ["20260301233001", "20260301233000", true],
  ["20260301233000", "20260301233000", false],
  // The same instant, or a later one, under offsets that make the digits say otherwise.
  ["2026-03-02T06:30:00+07:00", "2026-03-01T23:30:00Z", false],
  ["2026-03-01T23:30:01Z", "2026-03-02T06:30:00+07:00", true],
  ["2026-03-01T23:30:00.5Z", "2026-03-02T06:30:00+07:00", true],
  // Digits are those of the zone.
  ["2026-03-01T23:30:00Z", "20260302063000", false],
  ["2026-03-01T23:30:01Z", "20260302063000", true],
  ["20260302063001", "2026-03-01T23:30:00Z", true],
  ["20260301233001", "2026-03-01T23:30:00Z", false],
])("%s is after %s: %s", (time, than, expected) => {
  expect(isAfter(time, than, "Asia/Ho_Chi_Minh")).toBe(expected);
});

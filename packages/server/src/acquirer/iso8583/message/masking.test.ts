import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { maskedLines, neverShown } from "./masking.ts";

const shownToo = new Set([60, 62]);
const lines = (fields: readonly [number, string][]) => maskedLines({ mti: "0200", fields: new Map(fields) }, shownToo);

describe("a masked message", () => {
  test("shows what a person needs to follow it", () => {
    expect(
      lines([
        [3, "000000"],
        [4, "000000150000"],
        [11, "000042"],
        [41, "T0000001"],
        [60, "000001"],
      ]),
    ).toEqual(["MTI  0200", "  3  000000", "  4  000000150000", " 11  000042", " 41  T0000001", " 60  000001"]);
  });

  test("shows of a card number its first six and its last four digits", () => {
    expect(lines([[2, "4111111111111111"]])).toEqual(["MTI  0200", "  2  411111******1111"]);
    expect(lines([[2, "411111"]])).toEqual(["MTI  0200", "  2  ******"]);
  });

  test("shows no private field unless the profile says so, and nothing secret even then", () => {
    expect(lines([[48, "tok_approve"]])).toEqual(["MTI  0200", " 48  (11 characters, not shown)"]);
    for (const field of neverShown) {
      if (field === 2) continue;
      const masked = maskedLines({ mti: "0200", fields: new Map([[field, "4111=2512"]]) }, new Set([field]));
      expect(masked[1]).toContain("not shown");
    }
  });

  test("masks a card number in a field that should have none", () => {
    expect(lines([[62, "card 4111111111111111!"]])).toEqual(["MTI  0200", " 62  card 411111******1111!"]);
  });

  test("shows no control character of a host's text", () => {
    expect(lines([[43, "A\u001b[2J\u00e9"]])).toEqual(["MTI  0200", " 43  A?[2J?"]);
  });

  test("never contains a card number, wherever one is", () => {
    const card = fc.constantFrom("4111111111111111", "5555555555554444", "378282246310005", "6011000990139424");
    const around = fc.string({ unit: fc.constantFrom("a", " ", "-", "=") });
    fc.assert(
      fc.property(card, fc.integer({ min: 2, max: 128 }), around, around, (number, field, before, after) => {
        fc.pre(field !== 90);
        const value = field === 2 ? number : `${before}${number}${after}`;
        expect(lines([[field, value]]).join()).not.toContain(number);
      }),
    );
  });
});

import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { maskedLines, neverShown } from "./masking.ts";

const shownToo = { also: new Set([60, 62]), totals: new Set([63]) };
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
      const masked = maskedLines(
        { mti: "0200", fields: new Map([[field, "4111=2512"]]) },
        { also: new Set([field]), totals: new Set([field]) },
      );
      expect(masked[1]).toContain("not shown");
    }
  });

  test("masks a card number in a field that should have none", () => {
    expect(lines([[62, "card 4111111111111111!"]])).toEqual(["MTI  0200", " 62  card 411111******1111!"]);
  });

  test("shows a merchant's id, one in ten of which passes Luhn", () => {
    expect(lines([[42, "100000000000009"]])).toEqual(["MTI  0200", " 42  100000000000009"]);
    expect(lines([[42, "411111111111116"]])).toEqual(["MTI  0200", " 42  411111111111116"]);
    expect(lines([[43, "100000000000009"]])).toEqual(["MTI  0200", " 43  100000*****0009"]);
  });

  test("shows totals, even those that would pass for a card number", () => {
    const totals = "000010000000001500000001000000000411111111111111100";
    const masked = (mti: string) =>
      maskedLines(
        {
          mti,
          fields: new Map([
            [63, totals],
            [86, "4111111111111111"],
          ]),
        },
        shownToo,
      );
    expect(masked("0500").slice(1)).toEqual([` 63  ${totals}`, " 86  4111111111111111"]);
    expect(masked("0510").slice(1)).toEqual(masked("0500").slice(1));
    expect(masked("0200")[1]).toBe(` 63  (${totals.length} characters, not shown)`);
  });

  test("shows no control character of a host's text", () => {
    expect(lines([[43, "A\u001b[2J\u00e9"]])).toEqual(["MTI  0200", " 43  A?[2J?"]);
  });

  test("never contains a card number, wherever one is", () => {
    const card = fc.constantFrom("4111111111111111", "5555555555554444", "378282246310005", "6011000990139424");
    const around = fc.string({ unit: fc.constantFrom("a", " ", "-", "=") });
    fc.assert(
      fc.property(card, fc.integer({ min: 2, max: 128 }), around, around, (number, field, before, after) => {
        fc.pre(![86, 87, 88, 89, 90, 97].includes(field));
        const value = field === 2 ? number : `${before}${number}${after}`;
        expect(lines([[field, value]]).join()).not.toContain(number);
      }),
    );
  });
});

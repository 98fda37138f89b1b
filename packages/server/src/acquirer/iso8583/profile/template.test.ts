import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { IsoFormatError } from "../message/element.ts";
import type { Structure } from "./schema.ts";
import { elementIn, tagProblem, writeElements } from "./template.ts";

const text: Structure = { form: "text", tagCharacters: 2, lengthDigits: 3, lengthFirst: false };
const lengthFirst: Structure = { ...text, lengthFirst: true };
const hex: Structure = { form: "ber", values: "hex" };
const ascii: Structure = { form: "ber", values: "ascii" };

describe("the elements of a field", () => {
  test.each<[string, Structure, readonly (readonly [string, string])[], string]>([
    [
      "tag and length in characters",
      text,
      [
        ["01", "tok_a"],
        ["37", "R1"],
      ],
      "01005tok_a37002R1",
    ],
    ["a length before the tag, which it counts", lengthFirst, [["T1", "tok_a"]], "007T1tok_a"],
    [
      "BER-TLV",
      hex,
      [
        ["9F26", "a1b2"],
        ["82", "5C00"],
      ],
      "9F2602A1B282025C00",
    ],
    ["BER-TLV of characters", ascii, [["DF8129", "AB"]], "DF8129024142"],
    ["BER-TLV with a length of just two bytes", hex, [["5A", "00".repeat(128)]], `5A8180${"00".repeat(128)}`],
    ["BER-TLV with a long length", hex, [["5A", "00".repeat(200)]], `5A81C8${"00".repeat(200)}`],
  ])("are written as %s", (_, structure, elements, written) => {
    expect(writeElements(elements, structure)).toBe(written);
    for (const [tag, value] of elements) {
      expect(elementIn(written, tag, structure).toLowerCase()).toBe(value.toLowerCase());
    }
    expect(elementIn(written, "99", structure)).toBe("");
  });

  test("are refused if one is too long for its length", () => {
    expect(() => writeElements([["01", "x".repeat(1_000)]], text)).toThrow(IsoFormatError);
    expect(() => writeElements([["01", "x".repeat(998)]], lengthFirst)).toThrow("the element 01 is too long");
  });

  test("have tags of their form", () => {
    for (const tag of ["9F26", "82", "DF8129"]) expect(tagProblem(tag, hex)).toBeUndefined();
    for (const tag of ["9F", "8", "8201", "9f26", "DF81"]) expect(tagProblem(tag, hex), tag).toMatch(/is not a tag/);
    expect(tagProblem("01", text)).toBeUndefined();
    expect(tagProblem("001", text)).toBe("a tag has 2 characters");
  });

  test("are read as they were written, and a host's text of any form is read without an error", () => {
    const tags = fc.constantFrom("9F26", "82", "DF8129");
    const element = fc.tuple(tags, fc.string({ unit: fc.constantFrom("a", "0", "=", " "), maxLength: 400 }));
    fc.assert(
      fc.property(fc.uniqueArray(element, { selector: ([tag]) => tag }), (elements) => {
        const written = writeElements(elements, ascii);
        for (const [tag, value] of elements) expect(elementIn(written, tag, ascii)).toBe(value);
      }),
    );
    const structures = fc.constantFrom(text, lengthFirst, hex, ascii);
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom(..."0123456789ABCDEF x") }), structures, (given, structure) => {
        expect(typeof elementIn(given, "01", structure)).toBe("string");
      }),
    );
  });
});

import canonicalize from "canonicalize";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { canonicalJson } from "./canonical-json.ts";

describe("canonical JSON", () => {
  test("equals what the independent implementation of RFC 8785 writes, for any JSON", () => {
    fc.assert(
      fc.property(fc.jsonValue({ stringUnit: "binary" }), (value) => {
        expect(canonicalJson(value)).toBe(canonicalize(value));
      }),
      { numRuns: 1000 },
    );
  });

  test("reproduces the RFC's own example, section 3.2.2", () => {
    const value = JSON.parse(String.raw`{
      "numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
      "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/",
      "literals": [null, true, false]
    }`);
    expect(canonicalJson(value)).toBe(
      '{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],' +
        String.raw`"string":"€$\u000f\nA'B\"\\\\\"/"}`,
    );
  });

  test("orders keys by UTF-16 code units, as in the RFC's section 3.2.3", () => {
    const keys = ["\u20ac", "\r", "\ufb33", "1", "\ud83d\ude00", "\u0080", "\u00f6"];
    const text = canonicalJson(Object.fromEntries(keys.map((key) => [key, ""])));
    expect(Object.keys(JSON.parse(text)).sort()).toEqual([...keys].sort());
    const places = ["\\r", "1", "\u0080", "\u00f6", "\u20ac", "\ud83d\ude00", "\ufb33"].map((key) =>
      text.indexOf(`"${key}"`),
    );
    expect(places).toEqual([...places].sort((a, b) => a - b));
    expect(places[0]).toBe(1);
  });

  test.each([
    ["\ud800"],
    [{ "\udc00": "" }],
    [Number.NaN],
    [Number.POSITIVE_INFINITY],
    [1n],
    [undefined],
    [[undefined]],
    [() => 1],
  ])("refuses what JSON cannot carry (%#)", (value) => expect(() => canonicalJson(value)).toThrow(TypeError));

  test("leaves out a property whose value is undefined", () => {
    expect(canonicalJson({ b: undefined, a: "1" })).toBe('{"a":"1"}');
  });

  test("refuses hostile nesting instead of exhausting the stack", () => {
    expect(() => canonicalJson(JSON.parse("[".repeat(100_000) + "]".repeat(100_000)))).toThrow(/nested deeper/);
  });
});

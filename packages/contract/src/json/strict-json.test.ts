import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { parseStrictly } from "./strict-json.ts";

const json = fc.jsonValue({ maxDepth: 4, stringUnit: "binary" });

/** The same JSON with white space wherever it is allowed, and every character of a key escaped. */
function otherwiseWritten(value: unknown): string {
  if (Array.isArray(value)) return `[ ${value.map(otherwiseWritten).join(" , ")} ]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  const entries = Object.entries(value).map(([key, item]) => `${escaped(key)}\t:\n${otherwiseWritten(item)}`);
  return `{ ${entries.join(" ,\r")} }`;
}

function escaped(key: string): string {
  const units = Array.from({ length: key.length }, (_, at) => key.charCodeAt(at).toString(16).padStart(4, "0"));
  return `"${units.map((unit) => `\\u${unit}`).join("")}"`;
}

describe("strict JSON", () => {
  test("is read as JSON.parse reads it, however it is written", () => {
    fc.assert(
      fc.property(json, (value) => {
        for (const text of [JSON.stringify(value), JSON.stringify(value, undefined, 2), otherwiseWritten(value)]) {
          expect(parseStrictly(text)).toEqual({ value: JSON.parse(text) });
        }
      }),
      { numRuns: 500 },
    );
  });

  test("with a duplicate key in any object is refused, however it is written", () => {
    const writing = fc.constantFrom(JSON.stringify, escaped);
    const gap = fc.constantFrom("", " ", "\n", "\t");
    const around = fc.constantFrom(...["%", "[%]", '{"list":[{"x":"\\":"},%]}', '{"a":{"b":%},"c":"\\\\"}', '{"":%}']);
    fc.assert(
      fc.property(
        fc.string({ unit: "binary" }),
        json,
        json,
        writing,
        writing,
        gap,
        around,
        (key, a, b, one, two, space, whole) => {
          const object = `{${one(key)}${space}:${JSON.stringify(a)},"other":"1",${two(key)}:${JSON.stringify(b)}}`;
          const other = key === "other" ? object.replace(',"other":"1"', "") : object;
          expect(parseStrictly(whole.replace("%", () => other))).toEqual({ refused: "duplicate_key" });
        },
      ),
      { numRuns: 1000 },
    );
  });

  test.each([
    '{"__proto__":"1"}',
    '{"a":"\\":\\":"}',
    '{"a":":","b":":x"}',
    '{"a\\\\":"1","b\\"":"2"}',
    '{"a":" :","b":"\\t:"}',
    "[]",
    '"a"',
    "7",
  ])("may hold what only looks like a key twice: %s", (text) => expect(parseStrictly(text)).toHaveProperty("value"));

  test.each(["", "{", '{"a":1,}', "\ufeff{}", "{}{}", "{'a':1}", '{"a":"\n"}', '{"a":NaN}'])("is not %j", (text) => {
    expect(parseStrictly(text)).toEqual({ refused: "not_json" });
  });

  test.each(['"\\ud800"', '{"\\uDC00":""}', '[{"a":"\\udfff x"}]', '"\\udc00\\ud800"'])(
    "holds no lone surrogate: %s",
    (text) => {
      expect(parseStrictly(text)).toEqual({ refused: "not_json" });
    },
  );

  test("may contain an escaped surrogate pair", () => {
    expect(parseStrictly('"\\ud83d\\ude00"')).toEqual({ value: "😀" });
  });

  test.each([
    '{"":1,"":1}',
    '{"a":"","a":""}',
    String.raw`{"a":"\"\"\"\"","a":"1"}`,
    String.raw`{"a":"1","a":"\\"}`,
    String.raw`{"x":"\n\n\n\n\n\n\n\n","a":1,"a":1}`,
    String.raw`{"x":"\\\\\\\\\\\\\\\\","a":1,"a":1}`,
    '[{"a":{}},{"a":{},"a":[]}]',
  ])("with a key twice in few characters is refused: %s", (text) => {
    expect(parseStrictly(text)).toEqual({ refused: "duplicate_key" });
  });

  test("is refused beyond the bound of nesting", () => {
    expect(parseStrictly("[".repeat(60) + "]".repeat(60))).toHaveProperty("value");
    expect(parseStrictly("[".repeat(100_000) + "]".repeat(100_000))).toEqual({ refused: "not_json" });
  });
});

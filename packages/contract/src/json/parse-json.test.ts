import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { countKeys, parseJson, repeatedKey, writtenKeys } from "./parse-json.ts";
import { parseStrictly } from "./strict-json.ts";

const value = fc.jsonValue({ maxDepth: 4, stringUnit: "binary" });

function written(of: unknown, escaped: boolean): string {
  if (Array.isArray(of)) return `[${of.map((item) => written(item, escaped)).join(" ,")}]`;
  if (typeof of !== "object" || of === null) return JSON.stringify(of);
  const pairs = Object.entries(of).map(([key, item]) => `${text(key, escaped)} :${written(item, escaped)}`);
  return `{ ${pairs.join(",\n")}}`;
}

function text(key: string, escaped: boolean): string {
  if (!escaped) return JSON.stringify(key);
  const units = Array.from({ length: key.length }, (_, at) => key.charCodeAt(at).toString(16).padStart(4, "0"));
  return `"${units.map((unit) => `\\u${unit}`).join("")}"`;
}

describe("a JSON text whose keys are escaped", () => {
  test("is read by its own keys, whatever was parsed before", () => {
    // Another caller's text: Node's parser confuses its last key with that of a later text that begins with the same
    // keys.
    JSON.parse(String.raw`{"firstOfTwo":1,"\\":2}`);
    const later = String.raw`{"firstOfTwo":1,"\u0062":2}`;
    expect(parseJson(later)).toEqual({ firstOfTwo: 1, b: 2 });
    expect(parseStrictly(later)).toEqual({ value: { firstOfTwo: 1, b: 2 } });
    expect(parseJson(String.raw`{"x":[{"\u0062":2}],"\u0063":"d"}`)).toEqual({ x: [{ b: 2 }], c: "d" });
    // The last key says nothing of the others.
    expect(writtenKeys(String.raw`{"\u0061":{"b":"\\"},"c":3}`)).toEqual({ count: 3, areEscaped: true });
  });

  test("equals the same text without escapes", () => {
    fc.assert(
      fc.property(value, (it) => {
        expect(parseJson(written(it, true))).toEqual(JSON.parse(JSON.stringify(it)));
      }),
      { numRuns: 1_000 },
    );
  });

  test("keeps the last of two equal keys, and treats `__proto__` as an ordinary key", () => {
    expect(parseJson(String.raw`{"\u0061":1,"b":2,"a":3}`)).toEqual({ a: 3, b: 2 });
    const read = parseJson(String.raw`{"\u005f_proto__":{"polluted":true}}`);
    expect(Object.keys(Object(read))).toEqual(["__proto__"]);
    expect(Object.getPrototypeOf(read)).toBe(Object.prototype);
  });

  test("may be nested deeper than the stack", () => {
    const deep = 200_000;
    expect(Array.isArray(parseJson(`${"[".repeat(deep)}{"\\u0061":1}${"]".repeat(deep)}`))).toBe(true);
  });

  test("names the first key that it has twice in one object, however that is written", () => {
    expect(repeatedKey(String.raw`{"a":{"a":1},"b":[{"c":1,"\u0063":2}],"b":3}`)).toBe("c");
    expect(repeatedKey('{"a":{"a":1},"b":[{"a":1},{"a":2}]}')).toBeUndefined();
    expect(repeatedKey('{"__proto__":1,"__proto__":2}')).toBe("__proto__");
  });

  test("has as many keys as its objects have in all", () => {
    expect(countKeys(parseJson('{"a":{"b":1},"c":[{"d":null},"e",[{}]]}'))).toBe(4);
  });

  test("is refused if JSON.parse refuses it", () => {
    const valid = String.raw`{"\u0061":[1,-2.5e3,true,{"b":"c\""},{},[ ]],"\\":null}`;
    const change = fc.tuple(fc.nat(valid.length), fc.constantFrom("", ...'{}[]",:\\ \n0-.e\u00a0tx'));
    fc.assert(
      fc.property(change, fc.nat(2), ([at, by], cut) => {
        const changed = valid.slice(0, at) + by + valid.slice(at + cut);
        // Each key is the only one in its text, so that Node's parser cannot confuse it.
        expect(outcome(() => parseJson(changed)) === "refused").toBe(outcome(() => JSON.parse(changed)) === "refused");
      }),
      { numRuns: 3_000 },
    );
  });
});

function outcome(read: () => unknown): unknown {
  try {
    return read();
  } catch (error) {
    expect(error).toBeInstanceOf(SyntaxError);
    return "refused";
  }
}

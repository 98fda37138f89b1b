import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { ServiceError } from "../errors.ts";
import { bodyBounds, readJson } from "./json.ts";

function refusal(body: string | Buffer): string {
  try {
    readJson(Buffer.from(body));
    return "";
  } catch (error) {
    if (error instanceof ServiceError && error.code === "invalid_json") return error.message;
    throw error;
  }
}

describe("readJson", () => {
  test("reads every JSON value, compact or indented, as JSON.parse does", () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 8 }), fc.constantFrom(0, 1, 2), (value, indent) => {
        const text = JSON.stringify(value, null, indent);
        expect(readJson(Buffer.from(text))).toEqual(JSON.parse(text));
      }),
    );
  });

  test("a key that appears twice in one object is refused by its name, wherever and however it is written", () => {
    const key = fc.string({ maxLength: 8 });
    const depth = fc.integer({ min: 0, max: 5 });
    fc.assert(
      fc.property(key, fc.jsonValue(), fc.jsonValue(), depth, fc.boolean(), (name, one, other, levels, escaped) => {
        const plain = JSON.stringify(name);
        const second = escaped ? `"${escapeAll(name)}"` : plain;
        const twice = `{"a" : [1], ${plain}:${JSON.stringify(one)},${second} :${JSON.stringify(other)}}`;
        const text = `${'{"x":['.repeat(levels)}${twice}${"]}".repeat(levels)}`;
        expect(refusal(text)).toBe(`The key ${JSON.stringify(name)} appears twice in one object.`);
      }),
      { examples: [["a", 1, 1, 0, false]] },
    );
  });

  test("the same key in different objects is not a duplicate", () => {
    expect(refusal('{"a":{"a":[{"a":1},{"a":2}]},"b":"\\"a\\":1,\\"a\\":2"}')).toBe("");
  });

  test("__proto__ is a key like any other", () => {
    expect(Object.keys(readJson(Buffer.from('{"__proto__":1}')) as object)).toEqual(["__proto__"]);
    expect(refusal('{"__proto__":1,"__proto__":2}')).toContain("__proto__");
  });

  test.each([
    ["nothing", ""],
    ["a comma too much", '{"a":1,}'],
    ["two values", "{} {}"],
    ["a comment", "{} // all"],
    ["a byte order mark", "\ufeff{}"],
    ["NaN", "[NaN]"],
  ])("%s is refused without quoting the body", (_, body) => {
    expect(refusal(body)).toBe("The body is not well-formed JSON.");
  });

  test("bytes that are not UTF-8 are refused", () => {
    expect(refusal(Buffer.from([0x22, 0xc3, 0x28, 0x22]))).toBe("The body is not UTF-8.");
  });

  test("a partner's body has few values on few levels", () => {
    const read = (text: string) => () => readJson(Buffer.from(text), bodyBounds.ofPartner);
    expect(read(`{"a":{"b":{"c":{"d":1}}}}`)).not.toThrow();
    expect(read(`{"a":{"b":{"c":{"d":{}}}}}`)).toThrow(/nested deeper than 4/);
    expect(read(`[${all(199, () => "1")}]`)).not.toThrow();
    expect(read(`{"\\u0061":[${all(30_000, () => "1")}]}`)).toThrow(/over 200 values/);
  });

  test("an endlessly nested body is refused without a stack overflow", () => {
    expect(refusal("[".repeat(30_000) + "]".repeat(30_000))).toMatch(/nested deeper than 32/);
    expect(refusal("[".repeat(32) + "]".repeat(32))).toBe("");
  });

  const all = (count: number, make: (at: number) => string) =>
    Array.from({ length: count }, (_, at) => make(at)).join();

  test.each([
    ["values without end", `[${all(400_001, () => "1")}]`, "The body holds over 400000 values."],
    ["empty objects without end", `[${all(200_001, () => "{}")}]`, "The body holds over 400000 values."],
    ["keys without end", `{${all(257, (at) => `"${at}":1`)}}`, "The body holds an object with over 256 keys."],
    ["the same key without end", `{${all(9_000, () => '"a":1')}}`, "The body holds an object with over 256 keys."],
    [
      "names without end",
      `[${all(5_000, (at) => `{"a":1,"name ${at}":1}`)}]`,
      "The body holds over 1024 different keys.",
    ],
    [
      "shapes without end",
      `[${all(6_000, (at) => `{"${at % 31}":1,"x${at % 37}":1,"y${at % 41}":1}`)}]`,
      "The body holds objects of over 2048 kinds.",
    ],
    [
      "a bound passed before it turns out to be no JSON",
      `[${all(400_001, () => "1")}`,
      "The body holds over 400000 values.",
    ],
  ])("%s is refused before anybody parses it", (_, body, message) => {
    expect(refusal(body)).toBe(message);
  });

  test("as much as a report may hold is read: 1,000 items with every field, a settlement of 50,000", () => {
    const item = (at: number) => `{${all(45, (field) => `"field${field}":"${at}"`)}}`;
    expect(refusal(`{"completions":[${all(1_000, item)}]}`)).toBe("");
    const entry = (at: number) => `{"reqId":"${at}","refNo":"${at}"}`;
    expect(refusal(`{"completions":[{"settlementList":[${all(50_000, entry)}]}]}`)).toBe("");
    // Each item with other fields left out.
    const some = (at: number) => `{${all(45, (field) => `"field${(field + at) % 51}":"${at}"`)}}`;
    expect(refusal(`{"completions":[${all(1_000, some)}]}`)).toBe("");
  });

  test("white space, quotes and backslashes are counted as what they are", () => {
    expect(refusal(`{"a":"${"{[,:".repeat(300_000)}","b" \t\n :"${'\\"\\\\'.repeat(200_000)}"}`)).toBe("");
    for (const broken of ['"', '"\\', '{"a":"\\"', "]]]]", '"a" x', "}{"])
      expect(refusal(broken)).toBe("The body is not well-formed JSON.");
  });
});

function escapeAll(text: string): string {
  return Array.from({ length: text.length }, (_, at) => `\\u${text.charCodeAt(at).toString(16).padStart(4, "0")}`).join(
    "",
  );
}

import fc from "fast-check";
import { expect, test } from "vitest";
import { csvRecords, textOf, UnreadableText } from "./csv.ts";

test("the lines before the first that is not UTF-8 are read, and no other, however the file comes in pieces", async () => {
  const line = fc.string({
    unit: fc.constantFrom("a", "\u00e9", "\u20ac", "\u{1f600}", '""'),
    minLength: 1,
    maxLength: 6,
  });
  const bad = fc.constantFrom("ff", "c3", "e282", "f09f98", "80").map((hex) => Buffer.from(hex, "hex"));
  const isMarked = fc.boolean();
  const size = fc.integer({ min: 1, max: 9 });
  await fc.assert(
    fc.asyncProperty(
      fc.array(line),
      bad,
      fc.constantFrom("", "x", "x\ny\n"),
      isMarked,
      size,
      async (good, bytes, after, marked, size) => {
        const before = `${marked ? "\ufeff" : ""}${good.map((one) => `"${one}",\n`).join("")}`;
        const file = Buffer.concat([Buffer.from(before), bytes, Buffer.from(after)]);
        async function* pieces() {
          for (let at = 0; at < file.length; at += size) yield file.subarray(at, at + size);
        }
        const found: string[] = [];
        const reading = async () => {
          for await (const page of csvRecords(textOf(pieces()), { charactersMax: 100 })) {
            found.push(...page.map(({ cells: [cell = ""] }) => cell));
          }
        };
        const error = await reading().catch((thrown: unknown) => thrown);
        expect(error).toMatchObject({ constructor: UnreadableText, line: good.length + 1 });
        expect(found).toEqual(good.map((one) => one.replaceAll('""', '"')));
      },
    ),
  );
});

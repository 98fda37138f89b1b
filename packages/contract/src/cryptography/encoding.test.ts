import fc from "fast-check";
import { expect, test } from "vitest";
import { decodeStrictly, type Encoding, encodings } from "./encoding.ts";

/** The reference implementation: the bytes, encoded again, must equal the text. */
function byWritingAgain(text: string, encoding: Encoding): Buffer | undefined {
  const bytes = Buffer.from(text, encoding);
  const written = bytes.toString(encoding);
  return written === (encoding === "hex" ? text.toLowerCase() : text) ? bytes : undefined;
}

const some = fc.uint8Array({ maxLength: 40 }).map((bytes) => Buffer.from(bytes));

test("reads what each encoding writes", () => {
  fc.assert(
    fc.property(some, fc.constantFrom(...encodings), (bytes, encoding) => {
      expect(decodeStrictly(bytes.toString(encoding), encoding)).toEqual(bytes);
    }),
  );
});

test("refuses every text that an encoder would not write", () => {
  const character = fc.constantFrom(..."AaQgfwZz09+/-_==\n \u0141é😀");
  const edit = fc.record({ at: fc.nat(60), remove: fc.nat(4), insert: fc.array(character, { maxLength: 4 }) });
  const text = fc.oneof(
    fc.array(character, { maxLength: 12 }).map((characters) => characters.join("")),
    fc
      .tuple(some, fc.constantFrom(...encodings), fc.array(edit, { maxLength: 3 }))
      .map(([bytes, encoding, edits]) =>
        edits.reduce(
          (written, { at, remove, insert }) => written.slice(0, at) + insert.join("") + written.slice(at + remove),
          bytes.toString(encoding),
        ),
      ),
  );
  fc.assert(
    fc.property(text, fc.constantFrom(...encodings), (written, encoding) => {
      expect(decodeStrictly(written, encoding)).toEqual(byWritingAgain(written, encoding));
    }),
    { numRuns: 5_000 },
  );
});

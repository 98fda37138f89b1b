import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { asciiEncoding, bcdEncoding, standardLayout } from "./codec.fixture.ts";
import { Codec, type MessageLayout } from "./codec.ts";
import type { IsoEncoding } from "./element.ts";
import { IsoFormatError } from "./error.ts";
import { type ElementFormat, elementFormat } from "./format.ts";

const encodings = fc.record<IsoEncoding>({
  mti: fc.constantFrom("ascii", "bcd", "ebcdic"),
  bitmap: fc.constantFrom("binary", "hex", "hex-ebcdic"),
  lengths: fc.constantFrom("ascii", "bcd", "binary", "ebcdic"),
  text: fc.constantFrom("ascii", "ebcdic"),
  digits: fc.constantFrom("ascii", "bcd", "ebcdic"),
  tracks: fc.constantFrom("ascii", "bcd", "ebcdic"),
  bytes: fc.constantFrom("binary", "hex", "hex-ebcdic"),
  oddDigits: fc.record({ fixed: fc.constantFrom("left", "right"), variable: fc.constantFrom("left", "right") }),
});
const bytes = ["00", "09", "A0", "FF"];
const characters: Readonly<Record<Exclude<ElementFormat["content"], "b">, string>> = {
  a: "AZaz ",
  n: "0123456789",
  an: "AZaz 09",
  as: "AZaz .~",
  ns: "09 .~",
  ans: "AZaz09 .~",
  z: "0123456789=",
  xn: "0123456789",
};

/** Every value that a field of this format can carry, at its full length where that is fixed. */
function valuesOf({ content, lengthDigits, lengthMax }: ElementFormat): fc.Arbitrary<string> {
  const units = fc.constantFrom(...(content === "b" ? bytes : characters[content]));
  const minLength = lengthDigits === 0 ? lengthMax : 0;
  const value = fc.string({ unit: units, minLength, maxLength: Math.min(lengthMax, 60), size: "max" });
  return content === "xn" ? fc.tuple(fc.constantFrom("C", "D"), value).map((parts) => parts.join("")) : value;
}

const layout = standardLayout(bcdEncoding);
const later = standardLayout(bcdEncoding, "1993");
const anyFieldOf = ({ fields }: MessageLayout) =>
  fc.constantFrom(...fields.keys()).chain((number) => {
    const format = elementFormat(fields.get(number)?.format ?? "") as ElementFormat;
    return fc.tuple(fc.constant(number), valuesOf(format));
  });
const anyField = anyFieldOf(layout);
const mti = fc.string({ unit: fc.constantFrom(..."0123456789"), minLength: 4, maxLength: 4 });

describe("the codec", () => {
  test("unpacks what it packed: every field, in every encoding", () => {
    const packed = new Set<number>();
    fc.assert(
      fc.property(encodings, mti, fc.array(anyField, { maxLength: 30 }), (encoding, type, entries) => {
        const codec = new Codec(standardLayout(encoding));
        const message = { mti: type, fields: new Map(entries.sort(([one], [other]) => one - other)) };
        for (const number of message.fields.keys()) packed.add(number);
        expect(codec.unpack(codec.pack(message))).toEqual(message);
      }),
      { numRuns: 1_000 },
    );
    expect(packed.size).toBe(layout.fields.size);
  });

  test("unpacks what it packed by the formats of 1993", () => {
    const codec = new Codec(later);
    fc.assert(
      fc.property(mti, fc.array(anyFieldOf(later), { maxLength: 30 }), (type, entries) => {
        const message = { mti: type, fields: new Map(entries.sort(([one], [other]) => one - other)) };
        expect(codec.unpack(codec.pack(message))).toEqual(message);
      }),
    );
  });

  test("fails on bytes only with an error that names the problem", () => {
    const codecs = [new Codec(layout), new Codec(standardLayout(asciiEncoding))];
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 400 }), fc.constantFrom(...codecs), (bytes, codec) => {
        onlyFormatErrors(() => codec.unpack(Buffer.from(bytes)));
      }),
      { numRuns: 20_000 },
    );
  });

  test("never fails otherwise on a message of which one byte was changed or the end was lost", () => {
    const codec = new Codec(layout);
    const change = fc.record({ at: fc.nat(), to: fc.nat({ max: 255 }), length: fc.nat() });
    fc.assert(
      fc.property(fc.array(anyField, { maxLength: 30 }), change, (entries, { at, to, length }) => {
        const bytes = codec.pack({ mti: "0200", fields: new Map(entries) });
        bytes[at % bytes.length] = to;
        onlyFormatErrors(() => codec.unpack(bytes));
        onlyFormatErrors(() => codec.unpack(bytes.subarray(0, length % bytes.length)));
      }),
      { numRuns: 5_000 },
    );
  });
});

function onlyFormatErrors(run: () => unknown): void {
  try {
    run();
  } catch (error) {
    if (!(error instanceof IsoFormatError)) throw error;
  }
}

import { readFileSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { asciiEncoding, bcdEncoding, ebcdicEncoding, isoMessage, standardLayout } from "./codec.fixture.ts";
import { Codec, type MessageLayout, standardFields } from "./codec.ts";
import {
  type ElementFormat,
  elementFormat,
  fromEbcdic,
  type IsoEncoding,
  IsoFormatError,
  toEbcdic,
} from "./element.ts";

const bcd = new Codec(standardLayout(bcdEncoding));
const ascii = new Codec(standardLayout(asciiEncoding));
const fields = new Map([
  [3, "000000"],
  [4, "150000"],
  [11, "000042"],
  [22, "051"],
  [32, "12345"],
  [39, "00"],
  [48, "tok_approve"],
  [52, "0123456789ABCDEF"],
  [70, "301"],
]);

describe("the codec", () => {
  test("writes the bytes of a host that packs digits as BCD", () => {
    expect(bcd.pack({ mti: "0200", fields }).toString("hex")).toBe(
      [
        "0200",
        "b020040102011000",
        "0400000000000000",
        "000000",
        "000000150000",
        "000042",
        "0051",
        "05123450",
        "3030",
        `0011${Buffer.from("tok_approve").toString("hex")}`,
        "0123456789abcdef",
        "0301",
      ].join(""),
    );
  });

  test("writes the characters of a host that packs everything as ASCII", () => {
    expect(ascii.pack({ mti: "0200", fields }).toString("latin1")).toBe(
      "0200B02004010201100004000000000000000000000000001500000000420510512345000" + "11tok_approve0123456789ABCDEF301",
    );
  });

  test("writes the bytes of a host that speaks EBCDIC, and reads its text whatever it is", () => {
    const ebcdic = new Codec(standardLayout(ebcdicEncoding));
    const echo = isoMessage("0800", { 43: "Cafe (1) @ a~z".padEnd(40), 70: "301", 97: `C${"0".repeat(15)}7` });
    const packed = ebcdic.pack(echo);
    expect(packed.toString("hex")).toBe(
      [
        "f0f8f0f0",
        "f8f0f0f0f0f0f0f0f0f0f2f0f0f0f0f0f0f4f0f0f0f0f0f0f8f0f0f0f0f0f0f0",
        `c3818685404df15d407c4081a1a9${"40".repeat(26)}`,
        "f3f0f1",
        `c3${"f0".repeat(15)}f7`,
      ].join(""),
    );
    expect(ebcdic.unpack(packed)).toEqual(echo);
    const all = Buffer.from(Array.from({ length: 256 }, (_, byte) => byte));
    expect(toEbcdic(fromEbcdic(all))).toEqual(all);
  });

  test("writes a bitmap of eight bytes where no field above 64 is there", () => {
    expect(bcd.pack({ mti: "0810", fields: new Map([[39, "00"]]) }).toString("hex")).toBe("081000000000020000003030");
  });

  test("writes a track's separator as the half byte D", () => {
    const packed = bcd.pack({ mti: "0200", fields: new Map([[35, "4111=2512"]]) });
    expect(packed.toString("hex")).toBe("0200000000002000000009" + "4111d25120");
    expect(bcd.unpack(packed).fields.get(35)).toBe("4111=2512");
  });

  test("writes a length as bytes where the host counts so, and one field by an encoding of its own", () => {
    const layout = standardLayout({ ...bcdEncoding, lengths: "binary" });
    const own = new Map([...layout.fields, [63, { format: "ans...999", encoding: { lengths: "ascii" as const } }]]);
    const codec = new Codec({ ...layout, fields: own });
    const packed = codec.pack(isoMessage("0200", { 62: "A".repeat(300), 63: "B" }));
    expect(packed.subarray(10, 12).toString("hex")).toBe("012c");
    expect(packed.subarray(-4).toString("latin1")).toBe("001B");
    expect(codec.unpack(packed).fields.get(62)).toHaveLength(300);
  });

  test("accepts a host's text unchanged, whatever its characters", () => {
    const packed = Buffer.concat([Buffer.from("02100000000000100000", "hex"), Buffer.from([0x05, 0xe9, 0, 1, 2, 3])]);
    expect(bcd.unpack(packed).fields.get(44)).toBe("\u00e9\u0000\u0001\u0002\u0003");
  });

  test.each([
    ["a field that its layout lacks", new Map([[129, "1"]]), /field 129 is not in the profile/],
    ["too many digits", new Map([[4, "1234567890123"]]), /field 4 may be 12 long, and is 13/],
    ["letters in a number", new Map([[11, "12345X"]]), /field 11 must hold digits only/],
    ["too few bytes", new Map([[52, "0123"]]), /field 52 must be 8 long, and is 2/],
    ["a card number that is too long", new Map([[2, "41111111111111111111"]]), /field 2 may be 19 long, and is 20/],
  ])("refuses to pack %s, and names the field without its content", (_, wrong, message) => {
    const pack = () => bcd.pack({ mti: "0200", fields: wrong });
    expect(pack).toThrow(message);
    expect(pack).toThrow(IsoFormatError);
    expect(pack).not.toThrow(/4111111/);
    expect(bcd.pack({ mti: "0200", fields }).length).toBeGreaterThan(0);
  });

  test.each([
    ["", /ends in the message type/],
    ["02", /ends in the message type/],
    ["0200b0200401", /ends in the bitmap/],
    ["020a0000000002000000", /the message type must hold digits only/],
    ["02000000000002000000", /ends in field 39/],
    ["0200000000000200000030", /ends in field 39/],
    ["02000000000002000000303031", /1 bytes follow the last field/],
    ["02000020000000000000abcdef", /field 11 must hold digits only/],
    ["0200000000000001000010", /ends in the length of field 48/],
    ["020000000001000000009912", /field 32 may be 11 long, and says it is 99/],
    ["020000000001000000000a12", /the length of field 32 must be digits/],
  ])("refuses to unpack %j", (hex, message) => {
    const unpack = () => bcd.unpack(Buffer.from(hex, "hex"));
    expect(unpack).toThrow(message);
    expect(unpack).toThrow(IsoFormatError);
  });

  test.each([
    [1, "n6"],
    [129, "n6"],
    [4, "n0"],
    [4, "n..100"],
    [4, "q6"],
    [28, "xn..8"],
  ])("refuses a layout whose field %i is %j", (number, format) => {
    expect(() => new Codec({ encoding: bcdEncoding, fields: new Map([[number, { format }]]) })).toThrow(IsoFormatError);
  });
});

const path = join(import.meta.dirname, "../../../../../../docs/reference/iso8583.md");
const row = /^\| (\d+)(?:–(\d+))? \| .* \| `([^`]+)` \| `([^`]+)` \|$/gm;

test("the reference has the format of each field, from 2 to 128, by both versions of the standard", () => {
  const documented = [...readFileSync(path, "utf8").matchAll(row)].flatMap(([, first, last = first, of1987, of1993]) =>
    Array.from({ length: Number(last) - Number(first) + 1 }, (_, at) => [Number(first) + at, of1987, of1993]),
  );
  const known = [...standardFields["1987"]].map(([number, format]) => [
    number,
    format,
    standardFields["1993"].get(number),
  ]);
  expect(documented).toEqual(known);
  expect(documented.map(([number]) => number)).toEqual(Array.from({ length: 127 }, (_, at) => at + 2));
  for (const [, ...formats] of known) for (const format of formats) expect(elementFormat(String(format))).toBeDefined();
  for (const text of ["an..100", "an0", "xn..9", "an....9", "q4"])
    expect([text, elementFormat(text)]).toEqual([text, undefined]);
});

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
  const value = fc.string({ unit: units, minLength, maxLength: Math.min(lengthMax, 60) });
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
      fc.property(encodings, mti, fc.array(anyField, { maxLength: 12 }), (encoding, type, entries) => {
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
      fc.property(mti, fc.array(anyFieldOf(later), { maxLength: 12 }), (type, entries) => {
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
      fc.property(fc.array(anyField, { maxLength: 12 }), change, (entries, { at, to, length }) => {
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

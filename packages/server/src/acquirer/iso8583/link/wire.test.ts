import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { usualMac } from "../example-profile.fixture.ts";
import { asciiEncoding, bcdEncoding, ebcdicEncoding, isoMessage, standardLayout } from "../message/codec.fixture.ts";
import { Codec, type IsoMessage } from "../message/codec.ts";
import { IsoFormatError } from "../message/element.ts";
import { Mac } from "../message/mac.ts";
import { framing } from "./fake-host.fixture.ts";
import { type Authentication, FrameReader, type Framing, frame, Wire } from "./wire.ts";

const mac = new Mac("aes-cmac", Buffer.alloc(16, 3));
const other = new Mac("aes-cmac", Buffer.alloc(16, 4));
const sale: IsoMessage = isoMessage("0200", { 4: "000000150000", 11: "000042" });
const late: IsoMessage = isoMessage("0400", { 11: "000042", 90: "1".repeat(42) });
const echo: IsoMessage = isoMessage("0800", { 11: "000042", 70: "301" });

const wires = (
  [
    ["binary", bcdEncoding],
    ["hex", asciiEncoding],
    ["hex in EBCDIC", ebcdicEncoding],
  ] as const
).map(([encoding, fields]) => ({
  encoding,
  fields,
  open: (key: Mac | undefined, change: Partial<Authentication> = {}) =>
    new Wire({
      codec: new Codec(standardLayout(fields)),
      framing,
      authentication: key && { ...usualMac, networkMessages: false, mac: key, ...change },
    }),
}));

const network = { networkMessages: true };
const message = (frame: Buffer) => [...new FrameReader(framing).push(frame)][0] ?? Buffer.alloc(0);

describe.each(wires)("a wire whose MACs are written as $encoding", ({ encoding, fields, open }) => {
  test.each([
    ["field 64", sale, 64],
    ["field 128, where a field above 64 is there", late, 128],
  ] as const)("has the MAC in %s, over everything before it", (_, sent, field) => {
    const read = open(mac).read(message(open(mac).write(sent)));
    expect([...read.fields.keys()]).toEqual([...sent.fields.keys(), field]);
    expect(read.fields.get(field)).toMatch(/^[0-9A-F]{16}$/);
  });

  const in64 = (covers: Authentication["covers"]) => open(mac, { field: 64, covers });
  test.each(["before", "without", "zeros"] as const)(
    "may have it in field 64 beside a field above it: over the message %s",
    (covers) => {
      const sent = message(in64(covers).write(late));
      const read = in64(covers).read(sent);
      expect([...read.fields.keys()]).toEqual([11, 64, 90]);
      // The key covers field 90, or not.
      const changed = Buffer.from(sent);
      const last = changed.length - 1;
      changed[last] = (changed[last] ?? 0) ^ 1;
      if (covers === "before") expect(in64(covers).read(changed).fields.get(64)).toBe(read.fields.get(64));
      else expect(() => in64(covers).read(changed)).toThrow("the message's MAC does not match");
      expect(() => in64(covers).read(message(open(mac).write(late)))).toThrow("the message has no MAC");
    },
  );

  test("has a MAC over these very bytes", () => {
    const codec = new Codec(standardLayout(fields));
    const place = 8 * (encoding === "binary" ? 1 : 2);
    const packed = (value: string) => codec.pack({ ...late, fields: new Map([...late.fields, [64, value]]) });
    const empty = packed("0".repeat(16));
    const after = codec.packField(90, "1".repeat(42)).length;
    const covered = {
      before: empty.subarray(0, -after - place),
      without: Buffer.concat([empty.subarray(0, -after - place), empty.subarray(-after)]),
      zeros: empty,
    };
    for (const covers of ["before", "without", "zeros"] as const) {
      expect(message(in64(covers).write(late))).toEqual(packed(mac.of(covered[covers])));
    }
  });

  test("refuses a message of another key, one that was changed, and one without a MAC", () => {
    expect(() => open(mac).read(message(open(other).write(sale)))).toThrow("the message's MAC does not match");
    const changed = Buffer.from(message(open(mac).write(sale)));
    const at = changed.length - 20;
    changed[at] = (changed[at] ?? 0) ^ 1;
    expect(() => open(mac).read(changed)).toThrow();
    expect(() => open(mac).read(message(open(undefined).write(sale)))).toThrow("the message has no MAC");
  });

  test("asks for none in sign-on and echo, unless the profile says so", () => {
    expect(open(mac).read(message(open(mac).write(echo)))).toEqual(echo);
    expect(
      open(mac, network)
        .read(message(open(mac, network).write(echo)))
        .fields.has(128),
    ).toBe(true);
    expect(() => open(mac, network).read(message(open(mac).write(echo)))).toThrow("the message has no MAC");
  });
});

const framings: readonly Framing[] = (["binary2", "binary4", "bcd2", "ascii4"] as const).flatMap((length) =>
  ["", "6000010000"].flatMap((tpdu) => [true, false].map((countsItself) => ({ length, tpdu, countsItself }))),
);

describe("framing", () => {
  test.each([
    [{ length: "binary2", countsItself: false, tpdu: "6000010000" }, "0007", "6000010000", "abcd"],
    [{ length: "bcd2", countsItself: true, tpdu: "" }, "0004", "", "abcd"],
    [{ length: "ascii4", countsItself: false, tpdu: "" }, "30303032", "", "abcd"],
    [{ length: "binary4", countsItself: true, tpdu: "" }, "00000006", "", "abcd"],
  ] as const)("writes %j", (framing, ...parts) => {
    expect(frame(Buffer.from("abcd", "hex"), framing).toString("hex")).toBe(parts.join(""));
  });

  test("finds the messages however the connection splits them", () => {
    const messages = fc.array(fc.uint8Array({ minLength: 1, maxLength: 300 }), { maxLength: 6 });
    const pieces = fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1, maxLength: 50 });
    fc.assert(
      fc.property(fc.constantFrom(...framings), messages, pieces, (framing, sent, sizes) => {
        const wire = Buffer.concat(sent.map((message) => frame(Buffer.from(message), framing)));
        const reader = new FrameReader(framing);
        const found: Buffer[] = [];
        for (let at = 0, turn = 0; at < wire.length; turn += 1) {
          const size = sizes[turn % sizes.length] ?? 1;
          found.push(...reader.push(wire.subarray(at, at + size)));
          at += size;
        }
        expect(found.map((message) => message.toString("hex"))).toEqual(
          sent.map((message) => Buffer.from(message).toString("hex")),
        );
      }),
    );
  });

  test.each([
    ["ascii4", "00x1"],
    ["bcd2", "\u0000\u001a"],
    ["binary4", "\u00ff\u00ff\u00ff\u00ff"],
    ["binary2", "\u0000\u0003"],
  ] as const)("gives up on a length that cannot be right (%s), and loses no message before it", (length, header) => {
    const framing = { length, countsItself: false, tpdu: "6000010000" } as const;
    const answer = Buffer.from("an answer");
    const found: Buffer[] = [];
    const read = () => {
      const bytes = Buffer.concat([frame(answer, framing), Buffer.from(header, "latin1")]);
      for (const message of new FrameReader(framing).push(bytes)) found.push(message);
    };
    expect(read).toThrow(IsoFormatError);
    expect(found).toEqual([answer]);
  });

  test("refuses to send a message that is too long for its length field", () => {
    const framing = { length: "bcd2", countsItself: false, tpdu: "" } as const;
    expect(() => frame(Buffer.alloc(10_000), framing)).toThrow("a message of 10000 bytes is too long for its header");
  });

  test("treats an empty message as a sign of life", () => {
    const reader = new FrameReader({ length: "binary2", countsItself: false, tpdu: "6000010000" });
    expect([...reader.push(Buffer.from("0000", "hex"))]).toEqual([Buffer.alloc(0)]);
  });
});

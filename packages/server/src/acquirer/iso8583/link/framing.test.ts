import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { IsoFormatError } from "../message/error.ts";
import { FrameReader, type Framing, frame } from "./framing.ts";

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
  ] as const)("gives up on a length that cannot be right (%s)", (length, header) => {
    const reader = new FrameReader({ length, countsItself: false, tpdu: "6000010000" });
    expect(() => reader.push(Buffer.from(header, "latin1"))).toThrow(IsoFormatError);
  });

  test("refuses to send a message that is too long for its length field", () => {
    const framing = { length: "bcd2", countsItself: false, tpdu: "" } as const;
    expect(() => frame(Buffer.alloc(10_000), framing)).toThrow("a message of 10000 bytes is too long for its header");
  });

  test("treats an empty message as a sign of life", () => {
    const reader = new FrameReader({ length: "binary2", countsItself: false, tpdu: "6000010000" });
    expect(reader.push(Buffer.from("0000", "hex"))).toEqual([Buffer.alloc(0)]);
  });
});

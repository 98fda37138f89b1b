import fc from "fast-check";
import { expect, test } from "vitest";
import { isSendable, replaceUnsendable, textProblem } from "./text.ts";

test.each(["", "Quán Phở", "😀", "a&b", "line\nline", "\u0001\u007f", "\ufffd"])("%j can be sent", (text) => {
  expect(textProblem("billId", text)).toBeUndefined();
  expect(replaceUnsendable(text)).toBe(text);
});

test.each([
  ["a\0b", "a\ufffdb"],
  ["\ud83d", "\ufffd"],
  ["\ude00x", "\ufffdx"],
  ["\ude00\ud83d\0", "\ufffd\ufffd\ufffd"],
])("%j cannot, and is replaced by %j where it is not ours to refuse", (text, replaced) => {
  expect(textProblem("billId", text)).toMatchObject({ field: "billId", code: "invalid_text" });
  expect(replaceUnsendable(text)).toBe(replaced);
});

test("a replaced text can be sent, and a text that could be sent is not changed", () => {
  fc.assert(
    fc.property(fc.string({ unit: "binary" }), fc.string({ unit: "binary" }), (one, two) => {
      const text = `${one}\ud800${two}\0`;
      expect(isSendable(text)).toBe(false);
      expect(isSendable(replaceUnsendable(text))).toBe(true);
      expect(replaceUnsendable(one.replaceAll("\0", ""))).toBe(one.replaceAll("\0", ""));
    }),
  );
});

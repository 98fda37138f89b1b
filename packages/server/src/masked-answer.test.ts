import fc from "fast-check";
import { expect, test } from "vitest";
import { holdsCardNumber } from "./card-number.ts";
import { withoutCardNumbers } from "./masked-answer.ts";

const shown = (text: string) => withoutCardNumbers(Buffer.from(text)).toString();

test("a text without a card number stays as it is, byte for byte", () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 300 }), (bytes) => {
      const given = Buffer.from(bytes);
      if (holdsCardNumber(given.toString("utf8"))) return;
      expect(withoutCardNumbers(given)).toBe(given);
    }),
  );
});

test("a full card number keeps its first six and last four digits", () => {
  expect(shown("card 4111 1111-1111 1111 is unknown")).toBe("card 4111 11****** 1111 is unknown");
  expect(shown('{"pan":"4111111111111111","amount":"1000"}')).toBe('{"pan":"411111******1111","amount":"1000"}');
});

test.each([
  String.raw`{"pan":"\u0034111111111111111"}`,
  '{"cvv":"123"}',
  "4111\u200b1111\u200b11111111",
  "/?card=%34%31%31%31111111111111",
])("what hides one is not kept at all: %s", (text) => {
  expect(holdsCardNumber(shown(text))).toBe(false);
  expect(shown(text)).not.toContain("1111111");
});

test("a number that is cut off at the end is masked as well", () => {
  const cut = `${"x".repeat(4_096 - 15)}411111111111111`;
  expect(withoutCardNumbers(Buffer.from(cut), 4_096).toString()).toBe(`${"x".repeat(4_096 - 15)}411111*********`);
});

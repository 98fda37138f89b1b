import fc from "fast-check";
import { expect, test } from "vitest";
import { holdsCardNumber, maskCardNumbers } from "./card-number.ts";

const shown = (text: string) => maskCardNumbers(Buffer.from(text)).toString();

test("a text without a card number stays as it is, byte for byte", () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 300 }), (bytes) => {
      const given = Buffer.from(bytes);
      if (holdsCardNumber(given.toString("utf8"))) return;
      expect(maskCardNumbers(given)).toBe(given);
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
  'rejected: {"pan":"4111111111111111","cvv":"123"}',
  "pan=4111111111111111&card_cvv=123",
  "<pan>4111111111111111</pan><track2>4111111111111111=25121010000</track2>",
  "card 4111111111111111, CVV 123",
  "4111\u200b1111\u200b11111111",
  "4111\u00011111\u007f1111\u00851111",
  "/?card=%34%31%31%31111111111111",
  "4111%E2%80%8B1111%C2%851111%801111",
])("an answer that hides one is not kept at all: %s", (text) => {
  expect(holdsCardNumber(shown(text))).toBe(false);
  expect(shown(text)).not.toMatch(/1111.{0,12}1111|123|2512/s);
});

test.each(["\u0001", "\u007f", "\u0085", "\u200b", "\u00a0"])(
  "one parted by %j and cut off at the end is masked",
  (mark) => {
    const cut = Buffer.from(`answer ${["4111", "1111", "1111", "111"].join(mark)}`);
    for (const end of [0, 1, 4]) {
      const given = cut.subarray(0, cut.length - end);
      expect(maskCardNumbers(given, given.length).toString()).not.toMatch(/1111\D+1111/);
    }
  },
);

test("a number that is cut off at the end is masked as well", () => {
  const cut = `${"x".repeat(4_096 - 15)}411111111111111`;
  expect(maskCardNumbers(Buffer.from(cut), 4_096).toString()).toBe(`${"x".repeat(4_096 - 15)}411111*********`);
});

test.each([
  String.raw`{"pan":"\u0034111111111111111","pad":"`,
  String.raw`{"inner":"{\"pan\":\"\\u0034111111111111111\"}","pad":"`,
  String.raw`{"pan":"41\u200b111111111\u200b11111`,
  '{"card":{"cvv":"123"},"pad":"',
  '[{"track2":";4111111111111112=25121010000?"},"',
  String.raw`{"\u0063vv":"123","pad":"`,
  "card=4111%E2%80%8B1111%E2%80%8B1111%E2%80%8B111",
  "card=%34%31%31%31%31%31%31%31%31%31%31%31%31%3",
])("a long answer that hides one is not kept, where it is cut off, either: %s", (text) => {
  const cut = Buffer.from(text.startsWith("card") ? `pad=${"x".repeat(100)}&${text}` : `${text}${"x".repeat(100)}`);
  expect(maskCardNumbers(cut, cut.length).toString()).not.toMatch(/1111.{0,12}1111|31%31%31|123|2512/s);
});

test.each(['{"a":"\\u00e9","pin":"on the map","pad":"', "q=%E2%82%AC5&r=100%25"])(
  "an answer without one that is cut off stays as it is: %s",
  (text) => {
    const cut = Buffer.from(text + "x".repeat(100));
    expect(maskCardNumbers(cut, cut.length)).toBe(cut);
  },
);

import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { cardNumberProblem } from "../commands/requests/rules.ts";
import { cardNumberRanges, holdsCardNumber, maskCardNumbers } from "./card-number.ts";

function checkDigit(digits: string): string {
  for (let check = 0; check <= 9; check += 1) if (luhnSum(`${digits}${check}`) % 10 === 0) return check.toString();
  throw new Error("one of ten digits always fits");
}

/** The textbook way, not that of the code under test. */
function luhnSum(digits: string): number {
  return [...digits]
    .reverse()
    .flatMap((digit, place) => [...(Number(digit) * (place % 2 === 0 ? 1 : 2)).toString()])
    .reduce((sum, digit) => sum + Number(digit), 0);
}

const below = (limit: number) => Math.floor(Math.random() * limit);
const digitsOf = (length: number) => Array.from({ length }, () => below(10)).join("");

describe("the guard lets pass", () => {
  test.each([
    ["a masked number", "411111******1111"],
    ["a masked number in groups", "4111 11** **** 1111"],
    ["digits that fail Luhn", "4111111111111112"],
    ["a length its scheme does not have", "41111111111111"],
    ["a prefix no scheme has", "1111111111111117"],
    ["a masked security code, and words about tracks and pins", '{"cvv":"***","track":"parcel 17","pin":"on the map"}'],
    ["a code of another kind", '{"trackingNumber":"4512","spin":"1234","cidr":"10.0"}'],
    ["an encoded text without one", "https://x.example/?q=%34%31%31%31+1111"],
    ["a card number within a longer run of digits", "00004111111111111111000"],
    ["12 digits of a retrieval reference", "411111111111"],
    ["digits that other marks part", "4111.1111.1111.1111"],
    ["fractions in JSON", '{"lat":10.4111111111111111,"lng":[-106.371449635398431,0.2711360675856904e-3]}'],
    ["a trace's id of 32 digits in a W3C header", "00-4558476276756da00735f08d4a2b9c11-00f067aa0ba902b7-01"],
    ["digits on several lines", "4111\n1111\r\n1111\r1111"],
    ["nothing", ""],
  ])("%s", (_, text) => {
    expect(holdsCardNumber(text)).toBe(false);
  });
});

const cardNumbers = fc
  .constantFrom(...cardNumberRanges.flatMap((range) => range.lengths.map((length) => ({ ...range, length }))))
  .chain(({ from, to, length }) =>
    fc.tuple(
      fc.integer({ min: Number(from), max: Number(to) }),
      fc.array(fc.integer({ min: 0, max: 9 }), {
        minLength: length - from.length - 1,
        maxLength: length - from.length - 1,
      }),
    ),
  )
  .map(([prefix, rest]) => `${prefix}${rest.join("")}`)
  .map((digits) => digits + checkDigit(digits));

const separators = fc.constantFrom(
  ...[" ", "-", "  ", " - ", "\u00a0", "\u2009", "\u2011", "\u2013", "\u200b", "\t"],
  // Nobody sees these: format characters, fillers, variation selectors, tags.
  ...["\u200e", "\u202e", "\u2066", "\u061c", "\u115f", "\u3164", "\uffa0", "\ufe0f", "\u{e0100}", "\u{e0020}"],
  ...["\u034f", "\u180e", "\u17b4", "\u2800", "\u{1d173}"],
  ...["\0", "\u0001", "\b", "\v", "\f", "\u000e", "\u001b", "\u001c", "\u001f", "\u007f", "\u0080", "\u0085", "\u009f"],
);

const grouped = fc
  .tuple(cardNumbers, fc.integer({ min: 2, max: 6 }), separators)
  .map(([number, size, separator]) => number.replace(new RegExp(`(\\d{${size}})(?=\\d)`, "g"), `$1${separator}`));

const anyForm = fc.oneof(cardNumbers, grouped);

describe("the guard finds", () => {
  test("digits of full width", () => {
    const wide = (digits: string) => digits.replaceAll(/\d/g, (digit) => String.fromCharCode(0xff10 + Number(digit)));
    expect(holdsCardNumber(wide("4111111111111111"))).toBe(true);
    expect(holdsCardNumber(`card ${wide("4111")}\u3000${wide("1111")}\uff0d1111-1111`)).toBe(true);
    expect(holdsCardNumber(wide("4111111111111112"))).toBe(false);
  });

  // The second run of Myanmar's extended digits follows the first without a gap.
  test.each([0x0660, 0x06f0, 0x0966, 0x0e50, 0x116d0, 0x116da, 0x1d7ce, 0x1e950])(
    "digits of other scripts: from U+%x on",
    (zero) => {
      const spelled = (digits: string) => digits.replaceAll(/\d/g, (one) => String.fromCodePoint(zero + Number(one)));
      expect(holdsCardNumber(spelled("4111111111111111"))).toBe(true);
      expect(holdsCardNumber(spelled("4111 1111 1111 1112"))).toBe(false);
    },
  );

  test.each(cardNumberRanges.flatMap(({ from, to, lengths }) => lengths.map((length) => [from, to, length] as const)))(
    "numbers from %s to %s of %i digits",
    (from, to, length) => {
      for (const prefix of [from, to]) {
        for (let drawn = 0; drawn < 200; drawn += 1) {
          const digits = `${prefix}${digitsOf(length - prefix.length - 1)}`;
          expect(holdsCardNumber(digits + checkDigit(digits))).toBe(true);
        }
      }
    },
  );

  test("every card number, with spaces and dashes of any kind", () => {
    fc.assert(
      fc.property(anyForm, (text) => holdsCardNumber(text)),
      { numRuns: 2_000 },
    );
  });

  test("one within other text, whatever surrounds it but digits", () => {
    const text = fc.string().map((around) => around.replaceAll(/\d/g, "x"));
    fc.assert(fc.property(text, anyForm, text, (before, number, after) => holdsCardNumber(before + number + after)));
  });

  test("one beside other groups of digits: an expiry, a code, an order", () => {
    const group = fc.integer({ min: 0, max: 9_999_999 }).map(String);
    fc.assert(fc.property(group, cardNumbers, group, (one, number, two) => holdsCardNumber(`${one} ${number} ${two}`)));
  });

  test.each(["\0", "\u0001", "\u001f", "\u007f", "\u0085", "\u009f", "\u200b"])(
    "one parted or preceded by %j",
    (control) => {
      expect(holdsCardNumber([..."4111111111111111"].join(control))).toBe(true);
      expect(holdsCardNumber(`1000${control}4111111111111111${control}2512`)).toBe(true);
      expect(cardNumberProblem("merchantName", `4111${control}1111 1111${control}${control}1111`)).toBeDefined();
    },
  );

  test("one in JSON text: as text, as a number, as a key, escaped, and in JSON text within JSON text", () => {
    const escaped = (text: string) =>
      Array.from({ length: text.length }, (_, at) => `\\u${text.charCodeAt(at).toString(16).padStart(4, "0")}`).join(
        "",
      );
    fc.assert(
      fc.property(anyForm, (number) => {
        const plain = JSON.stringify({ note: { card: [number] } });
        expect(holdsCardNumber(plain)).toBe(true);
        expect(holdsCardNumber(JSON.stringify({ [number]: 1 }))).toBe(true);
        expect(holdsCardNumber(`{"card":"${escaped(number)}"}`)).toBe(true);
        expect(holdsCardNumber(`{"${escaped(number)}":""}`)).toBe(true);
        expect(holdsCardNumber(JSON.stringify({ inner: `{"card":"${escaped(number)}"}` }))).toBe(true);
        expect(holdsCardNumber(JSON.stringify(JSON.stringify(plain)))).toBe(true);
      }),
    );
    expect(holdsCardNumber('{"card":4111111111111111}')).toBe(true);
    expect(holdsCardNumber('{"card":4.111111111111111e15}')).toBe(true);
    expect(holdsCardNumber('{"card":4111111111111111.0}')).toBe(true);
    expect(holdsCardNumber("[5555555555554444.00,378282246310005.0]")).toBe(true);
    // Only a fraction outside of a string is none.
    expect(holdsCardNumber('{"card":"0.4111111111111111"}')).toBe(true);
    expect(holdsCardNumber('{"at":10.5,"card":"\\"0.4111111111111111"}')).toBe(true);
    expect(holdsCardNumber('{"at":10.5,"card":4111111111111111}')).toBe(true);
    expect(holdsCardNumber("see {0.4111111111111111}")).toBe(true);
  });

  test("one beside a UUID, which hides nothing but itself", () => {
    fc.assert(fc.property(fc.uuid(), cardNumbers, (uuid, number) => holdsCardNumber(`${uuid} ${number}`)));
  });

  test("one beside or within other hexadecimal digits, but not within an id or a digest of the usual lengths", () => {
    const digits = fc.constantFrom(24, 32, 40, 64);
    const padded = (number: string, length: number, letters: string) => `${letters}${number}`.padEnd(length, letters);
    fc.assert(
      fc.property(cardNumbers, digits, fc.constantFrom(..."abceABCE"), (number, length, letter) => {
        expect(holdsCardNumber(padded(number, length, letter))).toBe(false);
        expect(holdsCardNumber(`${padded("", length, letter)} ${number}`)).toBe(true);
        expect(holdsCardNumber(padded(number, length + 1, letter))).toBe(true);
      }),
    );
    // Tracks of a card, with a separator and a filler.
    for (const length of [24, 32, 40, 64]) {
      expect(holdsCardNumber("4111111111111111D2912".padEnd(length, "F"))).toBe(true);
      expect(holdsCardNumber("B4111111111111111D2912".padEnd(length, "c"))).toBe(true);
    }
  });

  test("the end of text made to be slow to read, at once", () => {
    const slow = `${"1 ".repeat(2_000)}4111111111111111`;
    expect(holdsCardNumber(slow)).toBe(true);
    expect(holdsCardNumber("[".repeat(2_000) + "\\".repeat(2_000))).toBe(false);
    const deep = (inner: string) => "[".repeat(30_000) + inner + "]".repeat(30_000);
    expect(holdsCardNumber(deep('"\\n"'))).toBe(false);
    expect(holdsCardNumber(deep('"4111\\u0031111 11111111"'))).toBe(true);
  });
});

describe("the guard finds, by their names in JSON text,", () => {
  test.each([
    '{"cvv":"123"}',
    '{"card":{"CVV2":4321}}',
    '{"security-code":"123"}',
    '{"pin":"1234"}',
    '{"pin_block":"0123456789ABCDEF"}',
    '{"track2":";4111111111111112=25121010000?"}',
    '{"trackData":"%B4111111111111112^A/B^2512"}',
    String.raw`{"\u0063vv":"123"}`,
    JSON.stringify({ inner: '{"cvc":"123"}' }),
  ])("refuses a string that must never be kept: %s", (text) => expect(holdsCardNumber(text)).toBe(true));
});

describe("the guard finds in encoded text", () => {
  const number = "4111111111111111";
  const encoded = [...number].map((digit) => `%3${digit}`).join("");
  test.each([
    `https://x.example/?card=${encoded}`,
    `https://x.example/?card=${encoded.replaceAll("%", "%25")}`,
    "https://x.example/4111%201111%201111%201111",
    "card=4111+1111+1111+1111&x=1",
    "4111%2D1111-1111%2d1111",
    "4111%011111%7f1111%1F1111",
    "%EF%BC%94111%D9%A1111%C2%A01111%E2%80%911111",
    "4111%A01111%AD1111%FF1111",
    "4111%E2%2580%8B1111%25e2%2580%258b11111111",
  ])("a card number: %s", (text) => expect(holdsCardNumber(text)).toBe(true));

  const all = Array.from({ length: 0x110000 }, (_, code) => (code >> 11 === 0x1b ? "" : String.fromCodePoint(code)));
  const invisible = all.filter((character) => /\p{Cf}|[\x80-\x9f]/u.test(character));

  test("a card number parted by any invisible character or C1 control, once or twice encoded", () => {
    expect(invisible.length).toBeGreaterThan(180);
    for (const character of invisible) {
      const once = encodeURIComponent(character);
      for (const mark of [
        character,
        once,
        once.toLowerCase(),
        encodeURIComponent(once),
        encodeURIComponent(once + once),
      ]) {
        expect(holdsCardNumber(number.replaceAll(/(?=1)/g, mark)), mark).toBe(true);
        expect(holdsCardNumber(JSON.stringify({ url: number.replaceAll(/(?=1)/g, mark) })), mark).toBe(true);
      }
    }
  });

  test("a card number parted by C1 controls as single bytes, encoded or as they are", () => {
    for (let byte = 0x80; byte < 0xa0; byte += 1) {
      expect(holdsCardNumber(number.replaceAll(/(?=1)/g, `%${byte.toString(16)}`))).toBe(true);
      const raw = Buffer.from(number.replaceAll(/(?=1)/g, String.fromCharCode(byte)), "latin1");
      expect(holdsCardNumber(raw.toString("utf8"))).toBe(true);
    }
  });
});

test("a merchant's id of 15 digits is none of UATP, and elsewhere it is", () => {
  const number = `1${"0".repeat(13)}${checkDigit(`1${"0".repeat(13)}`)}`;
  expect(cardNumberProblem("mid", number)).toBeUndefined();
  expect(cardNumberProblem("completions[3].merchantId", number)).toBeUndefined();
  expect(cardNumberProblem("billId", number)).toBeDefined();
});

test("the guard's message never repeats the number", () => {
  const problem = cardNumberProblem("extraData", "card 4111 1111 1111 1111");
  expect(problem).toMatchObject({ field: "extraData", code: "card_number_in_clear" });
  expect(JSON.stringify(problem)).not.toMatch(/\d/);
});

const masked = (text: string) => maskCardNumbers(Buffer.from(text)).toString();

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
  expect(masked("card 4111 1111-1111 1111 is unknown")).toBe("card 4111 11****** 1111 is unknown");
  expect(masked('{"pan":"4111111111111111","amount":"1000"}')).toBe('{"pan":"411111******1111","amount":"1000"}');
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
  expect(holdsCardNumber(masked(text))).toBe(false);
  expect(masked(text)).not.toMatch(/1111.{0,12}1111|123|2512/s);
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

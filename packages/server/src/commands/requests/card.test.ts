import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { chipProblems, maskedNumberProblem, shownDigitsProblem } from "./card.ts";
import type { CardRequest } from "./request.ts";

describe("masked number", () => {
  describe("card.number", () => {
    test.each([
      "411111******1111",
      "41111111****1111",
      "4111 11** **** 1111",
      "4111-11XX-XXXX-1111",
      "************1111",
      "****************",
      "37828******0005",
      "621234*********1234",
      "411111***1111",
      "xxxxxxxxxxxx1111",
    ])("%s is masked", (text) => {
      expect(maskedNumberProblem("card.number", text)).toBeUndefined();
    });

    test.each([
      ["a full one", "4111111111111111"],
      ["nothing hidden but one digit", "411111111111111*"],
      ["nine digits first", "411111111***1111"],
      ["eight digits first of a short one", "41111111***1111"],
      ["eight digits first of a short one in groups", "4111 1111 ***1 111"],
      ["five digits last", "411111*****11111"],
      ["two digits hidden", "41111111**1111"],
      ["digits in the middle", "4111**11**1111"],
      ["other text", "VISA 1111"],
      ["more than any card number has", "411111**********1111"],
      ["other marks", "411111......1111"],
    ])("%s is not", (_, text) => {
      expect(maskedNumberProblem("card.number", text)?.code).toBe("invalid_card_number");
    });
  });

  describe("a reported cardNumber", () => {
    test.each(["411111******1111", "1111", "411111-1111", "41111111…1111", ""])("%j goes out as given", (text) => {
      expect(shownDigitsProblem("cardNumber", text)).toBeUndefined();
    });

    test.each(["4111111111111", "411111111111****1"])("%s shows too much", (text) => {
      const problem = shownDigitsProblem("cardNumber", text);
      expect(problem?.code).toBe("invalid_card_number");
      expect(JSON.stringify(problem)).not.toContain("411");
    });
  });
});

describe("chip", () => {
  function problemsOf(chip: Partial<CardRequest>): string[] {
    const found = chipProblems({ token: "tok_approve", ...chip });
    return found.flatMap((problem) => (problem ? [`${problem.field} ${problem.code}`] : []));
  }

  const ciphertext = "A1B2C3D4E5F60718293A4B5C6D7E8F90A1B2C3D4E5F60718";
  const cryptogram = "9F2608A1B2C3D4E5F607189F2701809F10120110A0000F240000DAC000000000000000FF9A03261122";

  describe("chip data", () => {
    test("is taken as the POS encrypted it, and so are cryptograms, which hold no account data", () => {
      const chip = { sequenceNumber: "001", track2: ciphertext, pinBlock: "0123456789ABCDEF", emv: cryptogram };
      expect(problemsOf(chip)).toEqual([]);
      expect(problemsOf({ sequenceNumber: "1", pinBlock: "0123456789ABCDEF".repeat(2), emv: ciphertext })).toEqual([]);
      // Ciphertext that reads as the tag of a card number, and as the number and the separator of a track.
      expect(problemsOf({ emv: "5A0450F925D9DC71C76587628AD3F423E444A94BBB7C22BD" })).toEqual([]);
      expect(problemsOf({ track2: "888043721721D0348E7C5992E264D45C6C8983B0B2C68B91" })).toEqual([]);
      // A primitive tag's value is no tag.
      expect(problemsOf({ emv: "5F24035A0141" })).toEqual([]);
      expect(problemsOf({})).toEqual([]);
    });

    test.each([
      ["a track with its separator", { track2: "4111111111111111D29122010000000000" }, "card.track2"],
      ["a track as a reader gives it", { track2: "4111111111111111=29122010000000000" }, "card.track2"],
      ["a short track in small letters", { track2: "411111111111d2912" }, "card.track2"],
      ["a track and its filler", { track2: "4111111111111112D29122010000000000FFF" }, "card.track2"],
      ["a track before other bytes", { track2: "4111111111111111D2912201A1B2C3" }, "card.track2"],
      ["a track before other letters", { track2: "8600123412341234D2912201A1B2C3F0" }, "card.track2"],
      ["a track in ASCII", { track2: "3B343131313131313131313131313131313D323931323F" }, "card.track2"],
      ["a number and its filler", { track2: "411111111111111F" }, "card.track2"],
      ["a number alone", { track2: "4111111111111111" }, "card.track2"],
      ["a card number among chip data", { emv: `${cryptogram}5A084111111111111111` }, "card.emv"],
      ["a track among chip data", { emv: "57114111111111111111D29122010000000000" }, "card.emv"],
      ["a number with its filler among chip data", { emv: "5A084111111111111FFF" }, "card.emv"],
      ["track 1 among chip data", { emv: "560E42343131313131313131313131315E41" }, "card.emv"],
      ["track 2 in ASCII", { emv: "57153B34313131313131313131313131313131313D3239" }, "card.emv"],
      ["track 2 in EBCDIC", { emv: "5A10F4F1F1F1F1F1F1F1F1F1F1F1F1F1F1F1" }, "card.emv"],
      [
        "a number whose length was counted in digits",
        { emv: "5A1041111111111111115F340101820219805F2A0208" },
        "card.emv",
      ],
      ["a number in data that is cut off", { emv: "5A0841111111111111119F2608A1" }, "card.emv"],
      ["track 1 in data that is cut off", { emv: "560F2542343131313131313131313131319F2608A1" }, "card.emv"],
      ["a holder in data that is cut off", { emv: "5F2003444F459F2608A1" }, "card.emv"],
      ["a track of another kind among chip data", { emv: "9F6B104111111111111111D29122010000000F" }, "card.emv"],
      ["a card number inside another template", { emv: "A50A5A084111111111111111" }, "card.emv"],
      ["a card number inside a template", { emv: "700A5A084111111111111111" }, "card.emv"],
      [
        "a card number inside a long template",
        { emv: `70819E9F108190${"00".repeat(144)}5A084111111111111111` },
        "card.emv",
      ],
      ["a long length before a card number", { emv: "9F108102FFFF5A084111111111111111" }, "card.emv"],
    ] as const)("is refused where it has %s in the clear, without repeating it", (_, chip, field) => {
      expect(problemsOf(chip)).toEqual([`${field} card_number_in_clear`]);
      expect(JSON.stringify(chipProblems({ token: "tok_approve", ...chip }))).not.toContain("4111");
    });

    test.each(["56", "57", "5A", "5F20", "9F1F", "9F20", "9F6B"])(
      "has no tag %s in the clear, in small letters",
      (tag) => {
        expect(problemsOf({ emv: `${tag}0141`.toLowerCase() })).toEqual(["card.emv card_number_in_clear"]);
      },
    );

    test("is refused where it is no hexadecimal, or has another length", () => {
      expect(problemsOf({ sequenceNumber: "0001", track2: "XY", pinBlock: "0123", emv: "9F2" })).toEqual([
        "card.sequenceNumber invalid_value",
        "card.track2 invalid_value",
        "card.pinBlock invalid_value",
        "card.emv invalid_value",
      ]);
    });

    test("ends its reading whatever the bytes are", () => {
      fc.assert(
        fc.property(fc.uint8Array({ minLength: 1, maxLength: 60 }), (bytes) => {
          const found = problemsOf({ emv: Buffer.from(bytes).toString("hex") });
          expect(found.every((problem) => problem === "card.emv card_number_in_clear")).toBe(true);
        }),
        { numRuns: 2_000 },
      );
    });
  });
});

import { describe, expect, test } from "vitest";
import { maskedNumberProblem, shownDigitsProblem } from "./masked-number.ts";

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
    ["five digits last", "411111*****11111"],
    ["two digits hidden", "41111111**1111"],
    ["digits in the middle", "4111**11**1111"],
    ["other text", "VISA 1111"],
    ["more than any card number has", "411111****************1111"],
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

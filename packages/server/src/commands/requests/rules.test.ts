import type { Signing } from "@paybell/contract";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { delimiterProblem, isSendable, replaceUnsendable, textProblem } from "./rules.ts";

describe("text", () => {
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
});

describe("delimiter", () => {
  const standard: Signing = { mode: "fields" };
  const agreed: Signing = {
    mode: "fields",
    card: ["id", "transaction_type", "status", "amount"],
  };

  describe("& and control characters", () => {
    test.each(["a&b", "&", "a\nb", "\t", "\u007f", "\u0085", "\u0000"])(
      "%j is refused in a field that is signed",
      (text) => {
        const problem = delimiterProblem("merchantTransId", text, "card", standard);
        expect(problem).toMatchObject({ field: "merchantTransId", code: "delimiter_in_signed_field" });
      },
    );

    test.each(["a=b", "a%26b", "Phở", "a b", "a;b", "\u00a0"])("%j is no delimiter", (text) => {
      expect(delimiterProblem("merchantTransId", text, "card", standard)).toBeUndefined();
    });

    test("are allowed in a field that is not signed", () => {
      expect(delimiterProblem("billId", "a&b", "card", standard)).toBeUndefined();
      expect(delimiterProblem("merchantTransId", "a&b", "settlement", standard)).toBeUndefined();
    });

    test.each([
      ["mid", "mid"],
      ["mid", "merchantId"],
      ["merchantId", "mid"],
      ["merchantId", "merchantId"],
      ["callBackUrl", "callbackUrl"],
      ["card.number", "cardNumber"],
      ["card.scheme", "cardScheme"],
      ["card.aid", "aid"],
      ["card.swipeType", "swipeType"],
      ["card.holder", "cardHolder"],
      ["card.expiry", "expDate"],
      ["card.tc", "tc"],
    ])("are refused in %s when %s, which it fills, is signed", (field, filled) => {
      const problem = delimiterProblem(field, "a&b", "card", { mode: "fields", card: [filled] });
      expect(problem?.field).toBe(field);
    });

    test("follow the partner's agreed list and not the standard order", () => {
      expect(delimiterProblem("merchantTransId", "a&b", "card", agreed)).toBeUndefined();
      expect(delimiterProblem("card.holder", "a&b", "card", standard)).toBeUndefined();
    });

    test("are allowed everywhere when the whole IPN is signed: nothing is joined", () => {
      expect(delimiterProblem("merchantTransId", "a&b", "card", { mode: "whole" })).toBeUndefined();
    });
  });
});

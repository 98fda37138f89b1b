import { defaultSigning } from "@paybell/contract";
import { describe, expect, test } from "vitest";
import { type AcquirerReply, judge } from "./outcome.ts";

const approvals = new Set(["00", "08", "10", "11", "16"]);
const bare: AcquirerReply = { responseCode: "00", approveCode: "A1B2C3", refId: "123456789012", tc: "TC" };

function answered(change: Partial<AcquirerReply>) {
  return judge({ kind: "answered", answer: { ...bare, ...change }, approvals }, defaultSigning);
}

describe("an answer", () => {
  test("of 00 is success, and its texts are the acquirer's", () => {
    expect(answered({})).toEqual({
      state: "SUCCESS",
      isoResponseCode: "00",
      reverse: false,
      answer: { approveCode: "A1B2C3", refId: "123456789012", tc: "TC" },
      warnings: [],
    });
  });

  test.each(["01", "05", "51", "91", "96", "Z3"])("of %s is a failure, and nothing is reversed", (code) => {
    expect(answered({ responseCode: code })).toMatchObject({
      state: "ERROR",
      isoResponseCode: code,
      reverse: false,
      answer: { approveCode: bare.approveCode, refId: bare.refId },
    });
  });

  test.each(["08", "10", "11", "16"])("of %s is an approval that is not 00: a failure, and reversed", (code) => {
    const verdict = answered({ responseCode: code });
    expect(verdict).toMatchObject({
      state: "ERROR",
      isoResponseCode: code,
      reverse: true,
      answer: { refId: bare.refId },
    });
  });

  test("of a code that is in no list, beside an approval code, is a failure under that code, and reversed", () => {
    const verdict = answered({ responseCode: "85", isAmbiguous: true });
    expect(verdict).toMatchObject({
      state: "ERROR",
      isoResponseCode: "85",
      reverse: true,
      answer: { refId: bare.refId },
    });
  });

  test.each([
    ["10", true, { state: "SUCCESS", isoResponseCode: "00", reverse: false, approvedMinor: 5n }],
    ["10", false, { state: "ERROR", isoResponseCode: "10", reverse: true }],
    ["51", true, { state: "ERROR", isoResponseCode: "51", reverse: false }],
  ])("of %s with a part of the amount, accepted if possible: %s", (responseCode, allowPartial, judged) => {
    const answer = { ...bare, responseCode, approvedMinor: 5n };
    const {
      answer: _,
      warnings: __,
      ...verdict
    } = judge({ kind: "answered", answer, approvals, allowPartial }, defaultSigning);
    expect(verdict).toEqual(judged);
  });

  test.each(["", "0", "000", "0 ", "\0\0", "é1"])(
    "of no code at all (%j) may be an approval: 96, and reversed",
    (code) => {
      const verdict = answered({ responseCode: code });
      expect(verdict).toMatchObject({ state: "ERROR", isoResponseCode: "96", reverse: true });
      expect(verdict.warnings).toMatchObject([{ field: "isoResponseCode" }]);
    },
  );

  test("with texts that cannot be sent is sent with U+FFFD in their place, and told", () => {
    const verdict = answered({ approveCode: "A\0", refId: "\ud800", tc: "\udc00" });
    expect(verdict.state).toBe("SUCCESS");
    expect(verdict.answer).toEqual({ approveCode: "A\ufffd", refId: "\ufffd", tc: "\ufffd" });
    expect(verdict.warnings.map(({ field, code }) => `${field} ${code}`)).toEqual([
      "approveCode invalid_text",
      "refId invalid_text",
      "tc invalid_text",
    ]);
  });

  test("with a delimiter in a signed text is sent as it is, and told", () => {
    const verdict = answered({ approveCode: "A&B", refId: "1&2" });
    expect(verdict.answer).toMatchObject({ approveCode: "A&B", refId: "1&2" });
    expect(verdict.warnings).toMatchObject([{ field: "approveCode", code: "delimiter_in_signed_field" }]);
    expect(answered({ approveCode: "A&B", responseCode: "05" }).warnings).toEqual([]);
  });
});

describe("no answer", () => {
  test.each([
    ["no_answer", "68", true],
    ["not_sent", "91", false],
    ["instance_gone", "96", true],
  ] as const)("%s is ERROR %s, reversed: %s", (kind, isoResponseCode, reverse) => {
    expect(judge({ kind }, defaultSigning)).toEqual({
      state: "ERROR",
      isoResponseCode,
      reverse,
      answer: { approveCode: "", refId: "", tc: "" },
      warnings: [],
    });
  });
});

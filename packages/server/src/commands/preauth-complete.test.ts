import { defaultSigning } from "@paybell/contract";
import { describe, expect, test } from "vitest";
import { answer, approvals, numbers, originalFields, reqId, start } from "./original-facts.fixture.ts";
import type { AcquirerOutcome } from "./outcome.ts";
import { beginPreAuthComplete, completePreAuthComplete, followingAmountProblem } from "./preauth-complete.ts";
import type { PreAuthCompleteRequest } from "./request.ts";

const request: PreAuthCompleteRequest = {
  command: "PREAUTH_COMPLETE",
  reqId,
  transactionId: "01980000-0000-7000-8000-000000000001",
  amount: "80.5",
  billId: "B-2",
};
const begun = beginPreAuthComplete(request, { fields: { ...originalFields, batchNo: "" } }, numbers, start);
const complete = (outcome: AcquirerOutcome) => completePreAuthComplete(begun, outcome, defaultSigning);

describe("a PreAuth-Complete at INIT", () => {
  test("has its PreAuth's fields, but its own amount as given, the open batch and what it was given", () => {
    expect(begun).toEqual({
      kind: "card",
      command: "PREAUTH_COMPLETE",
      fields: {
        ...originalFields,
        id: start.id,
        reqId,
        amount: "80.5",
        billId: "B-2",
        traceNo: "000043",
        batchNo: "000008",
        transDateTime: "2026-11-21T01:02:03.456Z",
        status: "INIT",
        isoResponseCode: "",
        refId: "",
      },
    });
  });
});

describe("a PreAuth-Complete once its outcome is known", () => {
  test("is SUCCESS for 00, with the acquirer's refId, approveCode and tc", () => {
    const completed = complete({ kind: "answered", answer, approvals });
    expect(completed).toMatchObject({ state: "SUCCESS", reverse: false, warnings: [] });
    expect(completed.facts.fields).toEqual({
      ...begun.fields,
      status: "SUCCESS",
      isoResponseCode: "00",
      approveCode: "A1B2C3",
      refId: "123456789012",
      tc: "HOSTTC",
    });
  });

  test("keeps its PreAuth's approveCode and tc where the acquirer sends none", () => {
    const { facts } = complete({ kind: "answered", answer: { ...answer, approveCode: "", tc: "" }, approvals });
    expect(facts.fields).toMatchObject({ approveCode: "original approveCode", tc: "original tc" });
  });

  test("keeps the acquirer's own approveCode and refId where it fails, never its original's", () => {
    const declined = { ...answer, responseCode: "51", approveCode: "" };
    const fields = (said: typeof answer) => complete({ kind: "answered", answer: said, approvals }).facts.fields;
    expect(fields(declined)).toMatchObject({ approveCode: "", refId: answer.refId });
    expect(fields({ ...answer, responseCode: "10" })).toMatchObject({ approveCode: "A1B2C3", refId: answer.refId });
    expect(complete({ kind: "no_answer" }).facts.fields).toMatchObject({ approveCode: "", refId: "" });
  });

  test.each([
    [{ kind: "answered", answer: { ...answer, responseCode: "51" }, approvals }, "51", false],
    [{ kind: "answered", answer: { ...answer, responseCode: "10" }, approvals }, "10", true],
    [{ kind: "no_answer" }, "68", true],
    [{ kind: "not_sent" }, "91", false],
    [{ kind: "in_doubt" }, "96", true],
  ] as const)("%j is ERROR %s, reversed: %s", (outcome, isoResponseCode, reverse) => {
    const completed = complete(outcome);
    expect(completed).toMatchObject({ state: "ERROR", reverse });
    expect(completed.facts.fields).toMatchObject({ status: "ERROR", isoResponseCode });
  });
});

test("the amount is judged by the decimals of the PreAuth's currency", () => {
  expect(followingAmountProblem("80.5", "USD")).toBeUndefined();
  expect(followingAmountProblem("80.505", "KWD")).toBeUndefined();
  expect(followingAmountProblem("80.505", "USD")).toMatchObject({ field: "amount", code: "invalid_amount" });
  expect(followingAmountProblem("80.5", "VND")).toMatchObject({ field: "amount", code: "invalid_amount" });
});

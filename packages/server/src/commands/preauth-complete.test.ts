import { describe, expect, test } from "vitest";
import { numbers, originalFields, reqId, start } from "./original-facts.fixture.ts";
import { beginPreAuthComplete, followingAmountProblem } from "./preauth-complete.ts";
import type { PreAuthCompleteRequest } from "./request.ts";

const request: PreAuthCompleteRequest = {
  command: "PREAUTH_COMPLETE",
  reqId,
  transactionId: "01980000-0000-7000-8000-000000000001",
  amount: "80.5",
  billId: "B-2",
};
const begun = beginPreAuthComplete(request, { fields: { ...originalFields, batchNo: "" } }, numbers, start);

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

test("the amount is judged by the decimals of the PreAuth's currency", () => {
  expect(followingAmountProblem("80.5", "USD")).toBeUndefined();
  expect(followingAmountProblem("80.505", "KWD")).toBeUndefined();
  expect(followingAmountProblem("80.505", "USD")).toMatchObject({ field: "amount", code: "invalid_amount" });
  expect(followingAmountProblem("80.5", "VND")).toMatchObject({ field: "amount", code: "invalid_amount" });
});

import { defaultSigning } from "@paybell/contract";
import { describe, expect, test } from "vitest";
import { answer, approvals, numbers, originalFields, reqId, start } from "./original-facts.fixture.ts";
import type { AcquirerOutcome } from "./outcome.ts";
import type { VoidRequest } from "./request.ts";
import { beginVoid, completeVoid } from "./void.ts";

const request: VoidRequest = { command: "VOID", reqId, transactionId: "01980000-0000-7000-8000-000000000001" };
const begin = (change: Partial<VoidRequest> = {}, voidsPreAuth = false) =>
  beginVoid({ ...request, ...change }, { fields: originalFields }, numbers, start, { voidsPreAuth });
const complete = (outcome: AcquirerOutcome) => completeVoid(begin(), outcome, defaultSigning);

const own = {
  id: start.id,
  reqId,
  traceNo: "000043",
  batchNo: "000008",
  transDateTime: "2026-11-21T01:02:03.456Z",
  status: "INIT",
  isoResponseCode: "",
  refId: "",
};

describe("a Void at INIT", () => {
  test("has its original's fields, and of its own what identifies it", () => {
    expect(begin()).toEqual({ kind: "card", command: "VOID", fields: { ...originalFields, ...own } });
  });

  test("has what it was given in place of what it would inherit, and takes an empty text for an absent one", () => {
    const given = { merchantTransId: "MT-2", billId: "B-2", extraData: "{}", deviceId: "D-2", appName: "App 2" };
    expect(begin(given).fields).toEqual({ ...originalFields, ...given, ...own });
    const empty = { merchantTransId: "", billId: "", extraData: "", deviceId: "", appName: "" };
    expect(begin(empty)).toEqual(begin());
  });

  test("of a PreAuth says so, and is in no batch", () => {
    expect(begin({}, true)).toMatchObject({ voidsPreAuth: true, fields: { batchNo: "" } });
    expect(begin()).not.toHaveProperty("voidsPreAuth");
  });

  test("never has the callBackUrl, neither its own nor its original's", () => {
    expect(JSON.stringify(begin({ callBackUrl: "https://partner.example/" }))).not.toContain("partner.example");
  });
});

describe("a Void once its outcome is known", () => {
  test("is SUCCESS for 00, with the acquirer's approveCode, refId and tc", () => {
    const completed = complete({ kind: "answered", answer, approvals });
    expect(completed).toMatchObject({ state: "SUCCESS", reverse: false, warnings: [] });
    expect(completed.facts.fields).toEqual({
      ...originalFields,
      ...own,
      status: "SUCCESS",
      isoResponseCode: "00",
      refId: answer.refId,
      approveCode: "A1B2C3",
      tc: "HOSTTC",
    });
  });

  test("keeps its original's approveCode and tc where the acquirer sends none", () => {
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
    expect(completed.facts.fields).toMatchObject({ status: "ERROR", isoResponseCode, amount: "100.00" });
  });
});

import { describe, expect, test } from "vitest";
import { answer, approvals, reqId, start } from "./original.fixture.ts";
import type { AcquirerOutcome } from "./outcome.ts";
import { beginReversal, reversalStateAfter, succeedReversal } from "./reversal.ts";

const originalId = "01980000-0000-7000-8000-000000000001";
const original = { id: originalId, tid: "T1", mid: "M1", traceNo: "000042" };
const begun = beginReversal({ command: "REVERSAL", reqId, transactionId: originalId }, original, start);
const answered = (responseCode: string): AcquirerOutcome => ({
  kind: "answered",
  answer: { ...answer, responseCode },
  approvals,
});

describe("a partner's Reversal at INIT", () => {
  test("has its original's terminal and trace number", () => {
    expect(begun).toEqual({
      kind: "system",
      fields: {
        id: start.id,
        isoResponseCode: "",
        mid: "M1",
        originalId,
        originalReqId: "",
        reqId,
        status: "INIT",
        tid: "T1",
        traceNo: "000042",
        transDateTime: "2026-11-21T01:02:03.456Z",
      },
    });
  });

  test("of what has not come yet has its reqId alone, and is remembered as a success", () => {
    const originalReqId = "0f14e45f-ceea-467f-a8a6-3c7a0e2ab222";
    const early = beginReversal({ command: "REVERSAL", reqId, originalReqId }, undefined, start);
    expect(early.fields).toMatchObject({ originalReqId, originalId: "", tid: "", mid: "", traceNo: "" });
    expect(succeedReversal(early)).toEqual({
      state: "SUCCESS",
      facts: { kind: "system", fields: { ...early.fields, status: "SUCCESS", isoResponseCode: "00" } },
      warnings: [],
    });
  });
});

describe("a Reversal that was asked", () => {
  const lastWord = { tries: 1, mayOvertake: false, isSameSite: true, wasUnknown: false };

  test.each<[AcquirerOutcome, string]>([
    [answered("00"), "done"],
    [answered("25"), "done"],
    [answered("12"), "parked"],
    // An approval under another code is none of what ends a Reversal.
    [answered("10"), "parked"],
    [answered("?"), "parked"],
    // The acquirer, or what lies behind it, could not do it now.
    ...["09", "19", "68", "90", "91", "96"].map((code): [AcquirerOutcome, string] => [answered(code), "pending"]),
    [{ kind: "no_answer" }, "pending"],
    [{ kind: "not_sent" }, "pending"],
    [{ kind: "instance_gone" }, "pending"],
  ])("and got %j is %s, at its first try and at a later one", (outcome, after) => {
    expect(reversalStateAfter(outcome, lastWord)).toBe(after);
    expect(reversalStateAfter(outcome, { ...lastWord, tries: 2 })).toBe(after);
  });

  test.each([
    ["pending", { tries: 1, mayOvertake: true, isSameSite: true }],
    ["pending", { tries: 99, mayOvertake: true, isSameSite: false }],
    ["done", { tries: 99, mayOvertake: false, isSameSite: true }],
    ["pending", { tries: 7, mayOvertake: false, isSameSite: false }],
    ["parked", { tries: 8, mayOvertake: false, isSameSite: false }],
  ])("and is not known is %s by %j", (after, circumstances) => {
    const how = { ...circumstances, wasUnknown: true };
    expect(reversalStateAfter(answered("25"), how)).toBe(after);
    expect(reversalStateAfter(answered("00"), how)).toBe("done");
  });

  test.each([
    ["parked", { tries: 1, mayOvertake: true, wasUnknown: false }],
    ["pending", { tries: 2, mayOvertake: true, wasUnknown: false }],
    ["pending", { tries: 2, mayOvertake: true, wasUnknown: true }],
    ["done", { tries: 2, mayOvertake: false, wasUnknown: false }],
    ["parked", { tries: 2, mayOvertake: false, wasUnknown: true }],
  ])("and is a duplicate is %s by %j", (after, how) => {
    expect(reversalStateAfter(answered("94"), { ...how, isSameSite: true })).toBe(after);
  });
});

import { describe, expect, test } from "vitest";
import { beginLogon, completeLogon } from "./logon.ts";

const reqId = "8f14e45f-ceea-467f-a8a6-3c7a0e2ab111";
const begun = beginLogon(
  { command: "LOGON", reqId, tid: "T1", mid: "M1" },
  { traceNo: "000042" },
  { id: "01980000-0000-7000-8000-000000000001", atMs: 0 },
);
const answer = { responseCode: "00", approveCode: "", refId: "", tc: "" };
const approvals = new Set(["00"]);

describe("a Logon", () => {
  test("at INIT holds what identifies it", () => {
    expect(begun).toEqual({
      kind: "system",
      fields: {
        id: "01980000-0000-7000-8000-000000000001",
        isoResponseCode: "",
        mid: "M1",
        reqId,
        status: "INIT",
        tid: "T1",
        traceNo: "000042",
        transDateTime: "1970-01-01T00:00:00.000Z",
      },
    });
  });

  test.each([
    [{ kind: "answered", answer, approvals }, "SUCCESS", "00"],
    [{ kind: "answered", answer: { ...answer, responseCode: "03" }, approvals }, "ERROR", "03"],
    [{ kind: "no_answer" }, "ERROR", "68"],
    [{ kind: "not_sent" }, "ERROR", "91"],
    [{ kind: "in_doubt" }, "ERROR", "96"],
  ] as const)("%j is %s %s, and nothing is reversed", (outcome, state, isoResponseCode) => {
    const completed = completeLogon(begun, outcome);
    expect(completed.state).toBe(state);
    expect(completed.facts).toEqual({ kind: "system", fields: { ...begun.fields, status: state, isoResponseCode } });
    expect(completed).not.toHaveProperty("reverse");
  });
});

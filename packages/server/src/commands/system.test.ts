import { describe, expect, test } from "vitest";
import { answer, approvals, numbers, reqId, start } from "./original.fixture.ts";
import { beginTerminalCommand, completeSystemCommand } from "./system.ts";

describe.each([
  ["a Logon", "LOGON", {}],
  ["a Batch Upload", "BATCH_UPLOAD", { batchNo: "000008" }],
] as const)("%s", (_, command, own) => {
  const begun = beginTerminalCommand({ command, reqId, tid: "T1", mid: "M1" }, numbers, start);

  test("at INIT holds what identifies it, and an upload its batch", () => {
    expect(begun).toEqual({
      kind: "system",
      fields: {
        ...own,
        id: start.id,
        isoResponseCode: "",
        mid: "M1",
        reqId,
        status: "INIT",
        tid: "T1",
        traceNo: "000043",
        transDateTime: "2026-11-21T01:02:03.456Z",
      },
    });
  });

  test.each([
    [{ kind: "answered", answer, approvals }, "SUCCESS", "00"],
    [{ kind: "answered", answer: { ...answer, responseCode: "03" }, approvals }, "ERROR", "03"],
    [{ kind: "no_answer" }, "ERROR", "68"],
    [{ kind: "not_sent" }, "ERROR", "91"],
    [{ kind: "instance_gone" }, "ERROR", "96"],
  ] as const)("%j is %s %s, and nothing is reversed", (outcome, state, isoResponseCode) => {
    const completed = completeSystemCommand(begun, outcome);
    expect(completed.state).toBe(state);
    expect(completed.facts).toEqual({ kind: "system", fields: { ...begun.fields, status: state, isoResponseCode } });
    expect(completed).not.toHaveProperty("reverse");
  });
});

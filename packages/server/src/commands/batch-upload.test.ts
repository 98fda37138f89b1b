import { describe, expect, test } from "vitest";
import { beginBatchUpload, completeBatchUpload } from "./batch-upload.ts";
import { answer, approvals, numbers, reqId, start } from "./original-facts.fixture.ts";

const begun = beginBatchUpload({ command: "BATCH_UPLOAD", reqId, tid: "T1", mid: "M1" }, numbers, start);

describe("a Batch Upload", () => {
  test("at INIT holds what identifies it, and its batch", () => {
    expect(begun).toEqual({
      kind: "system",
      fields: {
        batchNo: "000008",
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
  ] as const)("%j is %s %s, and nothing is reversed", (outcome, state, isoResponseCode) => {
    const completed = completeBatchUpload(begun, outcome);
    expect(completed.facts.fields).toEqual({ ...begun.fields, status: state, isoResponseCode });
    expect(completed).toMatchObject({ state });
    expect(completed).not.toHaveProperty("reverse");
  });
});

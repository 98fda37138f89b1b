import { describe, expect, test } from "vitest";
import { numbers, originalFields, reqId, start } from "./original-facts.fixture.ts";
import type { VoidRequest } from "./request.ts";
import { beginVoid } from "./void.ts";

const request: VoidRequest = { command: "VOID", reqId, transactionId: "01980000-0000-7000-8000-000000000001" };
const begin = (change: Partial<VoidRequest> = {}, voidsPreAuth = false) =>
  beginVoid({ ...request, ...change }, { fields: originalFields }, numbers, start, { voidsPreAuth });

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

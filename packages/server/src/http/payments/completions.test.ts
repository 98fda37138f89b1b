import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ServiceError } from "../../errors.ts";
import { HttpTestService } from "../service.fixture.ts";

let service: HttpTestService;
beforeEach(async () => {
  service = await new HttpTestService().listen();
});
afterEach(() => service.close());

const completion = (externalId: string, more: Record<string, unknown> = {}) => ({
  partnerId: "0195f000-0000-7000-8000-000000000000",
  externalId,
  command: "SALE",
  status: "SUCCESS",
  isoResponseCode: "00",
  amount: "1",
  ...more,
});

const settlement = (externalId: string, more: Record<string, unknown>) =>
  completion(externalId, { command: "SETTLEMENT", amount: undefined, isoResponseCode: undefined, ...more });

interface Result {
  externalId: string;
  result: string;
  transactionId?: string;
  problem?: { code: string; status: number; errors?: { field: string; code: string }[] };
}

async function report(
  completions: unknown,
): Promise<{ status: number; results: Result[]; body: Record<string, unknown> }> {
  const { status, body } = await service.call("POST", "/operator/v1/completions", { json: { completions } });
  return { status, body, results: (body["results"] ?? []) as Result[] };
}

describe("POST /operator/v1/completions", () => {
  test("each item is independent, and the results are in the order of the items", async () => {
    const { status, results } = await report([
      completion("a"),
      completion("b", { amount: "bad" }),
      completion("c", { surprise: 1, status: undefined }),
      "no object",
      settlement("e", { settlementList: [{ reqId: "r", refNo: "1" }] }),
    ]);
    expect(status).toBe(200);
    expect(results.map(({ externalId, result }) => [externalId, result])).toEqual([
      ["a", "accepted"],
      ["b", "refused"],
      ["c", "refused"],
      ["", "refused"],
      ["e", "accepted"],
    ]);
    expect(results[0]?.transactionId).toMatch(/^[0-9a-f-]{36}$/);
    expect(results[1]?.problem).toMatchObject({
      code: "invalid_amount",
      errors: [{ field: "completions[1].amount", code: "invalid_amount" }],
    });
    const fields = Object.fromEntries((results[2]?.problem?.errors ?? []).map(({ field, code }) => [field, code]));
    expect(fields).toEqual({ "completions[2].surprise": "unknown_field", "completions[2].status": "missing_field" });
    expect(results[3]?.problem).toMatchObject({
      status: 400,
      errors: [{ field: "completions[3]", code: "wrong_type" }],
    });
    expect(service.reported.map(({ externalId }) => externalId)).toEqual(["a", "b", "e"]);
  });

  test("a card number as externalId is not repeated", async () => {
    const { results, body } = await report([completion("4111111111111111", { amount: "bad" })]);
    expect(results).toMatchObject([{ externalId: "(holds what looks like card data)", result: "refused" }]);
    expect(JSON.stringify(body)).not.toContain("4111111111111111");
  });

  test("a list may call its field reqID, as section 2.2 does", async () => {
    const { results } = await report([
      settlement("s", { settlementList: [{ reqID: "r", refNo: "1" }] }),
      settlement("s", { settlementList: [{ reqID: "r", reqId: "r", refNo: "1" }] }),
    ]);
    expect(results.map(({ result }) => result)).toEqual(["accepted", "refused"]);
    expect(service.reported).toMatchObject([{ settlementList: [{ reqId: "r", refNo: "1" }] }]);
    const errors = results[1]?.problem?.errors?.map(({ field, code }) => `${field} ${code}`);
    expect(errors).toContain("completions[1].settlementList[0].reqID unknown_field");
  });

  test("errors of shape, of the partner and of rules are named together", async () => {
    const { results } = await report([
      completion("a", { amount: 5, currency: "XYZ", status: "DONE", reqId: "r", transDateTime: "today", more: 1 }),
      completion("b", { partnerId: service.strangerId, amount: 5, callBackUrl: "http://203.0.113.10/" }),
      completion("c", { partnerId: 5, deviceId: "4111111111111111", callBackUrl: "https://127.0.0.1/", tid: null }),
      completion("d", { command: "SETTLEMENT", amount: undefined, settlementList: [{ reqId: "4111111111111111" }] }),
    ]);
    const codes = results.map(({ problem }) =>
      Object.fromEntries(
        (problem?.errors ?? []).map(({ field, code }) => [field.replace(/^completions.../, ""), code]),
      ),
    );
    expect(codes[0]).toEqual({
      ".amount": "wrong_type",
      ".more": "unknown_field",
      ".currency": "invalid_currency",
      ".status": "invalid_value",
      ".reqId": "invalid_req_id",
      ".transDateTime": "invalid_value",
    });
    expect(codes[1]).toEqual({
      ".amount": "wrong_type",
      ".callBackUrl": "insecure_callback_url",
      ".partnerId": "unknown_partner",
    });
    // The device and the list of an unknown partner are not checked.
    expect(codes[2]).toEqual({ ".partnerId": "wrong_type", ".tid": "wrong_type" });
    expect(codes[3]).toEqual({
      ".isoResponseCode": "unknown_field",
      ".settlementList[0].refNo": "missing_field",
      ".settlementList[0].reqId": "card_number_in_clear",
      ".saleQuantity": "missing_field",
      ".saleTotalAmount": "missing_field",
      ".voidQuantity": "missing_field",
      ".voidTotalAmount": "missing_field",
    });
    expect(service.reported).toEqual([]);
  });

  test("a settlement's list is of the settlement's table only, and its entries are checked", async () => {
    const list = { settlementList: [{ reqId: "r" }, { reqId: 1, refNo: "x", more: "x" }] };
    const { results } = await report([
      completion("a", list),
      completion("b", { ...list, command: "SETTLEMENT", amount: undefined }),
      completion("c", { command: "NONE" }),
    ]);
    const codes = results.map(({ problem }) =>
      Object.fromEntries((problem?.errors ?? []).map(({ field, code }) => [field, code])),
    );
    expect(codes[0]).toEqual({ "completions[0].settlementList": "unknown_field" });
    expect(codes[1]).toMatchObject({
      "completions[1].settlementList[0].refNo": "missing_field",
      "completions[1].settlementList[1].reqId": "wrong_type",
      "completions[1].settlementList[1].more": "unknown_field",
    });
  });

  test("of many errors the first hundred are named", async () => {
    const settlementList = Array.from({ length: 1_000 }, () => ({ reqId: 1, refNo: 2 }));
    const unknown = Object.fromEntries(Array.from({ length: 200 }, (_, at) => [`unknown${at}`, 1]));
    const { results } = await report([settlement("a", { status: "ERROR", settlementList }), completion("b", unknown)]);
    for (const { problem } of results) expect(problem?.errors).toHaveLength(100);
  });

  test("without items there are no results", async () => {
    expect(await report([])).toMatchObject({ status: 200, results: [] });
  });

  test.each([
    [{}, "completions", "missing_field"],
    [{ completions: {} }, "completions", "wrong_type"],
    [{ completions: [], more: 1 }, "more", "unknown_field"],
    [{ completions: Array.from({ length: 1_001 }, () => 1) }, "completions", "invalid_value"],
  ])("a body that is not a list of at most 1,000 completions is refused as a whole", async (json, field, code) => {
    const answer = await service.call("POST", "/operator/v1/completions", { json });
    expect(answer).toMatchObject({ status: 400, body: { code, errors: [{ field, code }] } });
  });

  test("a body of many MiB is read, one over 8 MiB is 413", async () => {
    const large = (count: number) =>
      Array.from({ length: count }, (_, at) =>
        completion(String(at), { extraData: "x".repeat(4_096), merchantName: "é" }),
      );
    expect((await report(large(1_000))).results).toHaveLength(1_000);
    const headers = { "content-type": "application/json" };
    const body = JSON.stringify({ completions: large(1_000) }) + " ".repeat(8 * 1024 * 1024);
    const refused = await service.call("POST", "/operator/v1/completions", { body, headers });
    expect(refused).toMatchObject({ status: 413, body: { code: "body_too_large" } });
  });

  test("when nothing can be made durable the whole report is 503", async () => {
    service.fails("report", new ServiceError("unavailable", undefined, { retryAfterS: 5 }));
    const answer = await service.call("POST", "/operator/v1/completions", { json: { completions: [completion("a")] } });
    expect(answer.status).toBe(503);
    expect(answer.headers.get("retry-after")).toBe("5");
  });
});

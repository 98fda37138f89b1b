import { cardIpnFields, settlementIpnFields } from "@paybell/contract";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { badFields, ServiceError } from "../../errors.ts";
import { HttpTestService, otherApiKey } from "../service.fixture.ts";
import { transactionSchema } from "./commands.ts";

let service: HttpTestService;
beforeEach(async () => {
  service = await new HttpTestService().listen();
});
afterEach(() => service.close());

const reqId = "aaaaaaaa-aaaa-4aaa-8aaa-AAAAAAAAAAAA";
const card = { token: "tok_approve", number: "411111******1111", swipeType: "C", aid: "A0000000031010" };
const sale = {
  command: "SALE",
  reqId,
  amount: "12.50",
  currency: "USD",
  tid: "T1",
  mid: "M1",
  merchantTransId: "B1",
  card,
};

const run = (json: unknown, headers: Record<string, string> = {}) =>
  service.call("POST", "/v1/commands", { json, headers });

function codesOf(body: Record<string, unknown>): Record<string, string> {
  const errors = (body["errors"] ?? []) as { field: string; code: string; message: string }[];
  for (const { message } of errors) expect(message).toMatch(/^\S.*\.$/);
  return Object.fromEntries(errors.map(({ field, code }) => [field, code]));
}

describe("POST /v1/commands", () => {
  test("answers 200 with every field of the card IPN except the signature, and with additional fields", async () => {
    const { status, body } = await run(sale);
    expect(status).toBe(200);
    const names = cardIpnFields.map(({ name }) => name).filter((name) => name !== "signature");
    expect(Object.keys(body).sort()).toEqual([...names, "command", "createdAt", "notification"].sort());
    expect(body).toMatchObject({
      command: "SALE",
      status: "SUCCESS",
      isoResponseCode: "00",
      amount: "12.50",
      transaction_type: "SALE",
      reqId,
      createdAt: "2026-01-31T00:00:00.000Z",
      notification: { state: "pending" },
    });
    expect(transactionSchema.safeParse(body).error).toBeUndefined();
    expect(service.ran).toEqual([{ request: sale, respondAsync: false }]);
  });

  test("a settlement's answer has the settlement IPN's fields, and what the acquirer answered", async () => {
    const { status, body } = await run({ command: "SETTLEMENT", reqId, tid: "T1", mid: "M1" });
    expect(status).toBe(200);
    const names = settlementIpnFields.map(({ name }) => name).filter((name) => name !== "signature");
    const beside = ["command", "createdAt", "notification", "isoResponseCode", "refId", "settlementDate"];
    expect(Object.keys(body).sort()).toEqual([...names, ...beside].sort());
    expect(body).toMatchObject({ settlementList: [], transaction_type: "SETTLE", isoResponseCode: "00", refId: "" });
    expect(transactionSchema.safeParse(body).error).toBeUndefined();
  });

  test("a system command's answer has no transaction_type", async () => {
    const { body } = await run({ command: "LOGON", reqId, tid: "T1", mid: "M1" });
    expect(body).toMatchObject({ command: "LOGON", status: "SUCCESS", transaction_type: "" });
    expect(transactionSchema.safeParse(body).error).toBeUndefined();
  });

  test.each(["respond-async", "wait=10, Respond-Async; x=1"])(
    "Prefer: %s answers 202 with status INIT",
    async (prefer) => {
      const { status, body } = await run(sale, { prefer });
      expect(status).toBe(202);
      expect(body).toMatchObject({ status: "INIT", notification: null, isoResponseCode: "" });
      expect(service.ran[0]?.respondAsync).toBe(true);
    },
  );

  test("another preference changes nothing", async () => {
    expect((await run(sale, { prefer: "return=minimal" })).status).toBe(200);
  });

  test("an outcome that is not known in time is 202", async () => {
    service.done = false;
    expect((await run(sale)).status).toBe(202);
  });

  test("every field of a wrong shape is named, with its path and its own code", async () => {
    const { amount: _, ...withoutAmount } = sale;
    const { status, body } = await run({
      ...withoutAmount,
      currency: 840,
      tid: "T".repeat(17),
      merchantTransId: null,
      surprise: 1,
      extraData: "é".repeat(2049),
      card: { ...card, number: undefined, holder: ["x"], pin: "1234" },
    });
    expect(status).toBe(400);
    expect(body["code"]).toBe("invalid_request");
    expect(codesOf(body)).toEqual({
      amount: "missing_field",
      currency: "wrong_type",
      tid: "too_long",
      merchantTransId: "wrong_type",
      surprise: "unknown_field",
      extraData: "too_long",
      "card.number": "missing_field",
      "card.holder": "wrong_type",
      "card.pin": "unknown_field",
    });
    expect(service.ran).toEqual([]);
  });

  test.each([
    [{ reqId }, "missing_field"],
    [{ reqId, command: "CREDIT" }, "invalid_value"],
    [{ reqId, command: 1 }, "wrong_type"],
    [{ reqId, command: "sale" }, "invalid_value"],
  ])("%j has a wrong command", async (json, code) => {
    const { body } = await run(json);
    expect(codesOf(body)).toEqual({ command: code });
  });

  test("errors of shape and broken rules are named together", async () => {
    const { status, body } = await run({
      ...sale,
      reqId: "order-1",
      amount: "0",
      currency: 840,
      tid: "T&1",
      paymentType: 5,
      callBackUrl: "http://203.0.113.10/",
      billId: "4111111111111111",
      card: { token: "nonsense", number: "4111111111111111", swipeType: "C", pin: "1234", expiry: "soon" },
    });
    expect(status).toBe(400);
    expect(codesOf(body)).toEqual({
      currency: "wrong_type",
      paymentType: "wrong_type",
      "card.pin": "unknown_field",
      reqId: "invalid_req_id",
      amount: "invalid_amount",
      tid: "delimiter_in_signed_field",
      callBackUrl: "insecure_callback_url",
      billId: "card_number_in_clear",
      "card.token": "unknown_test_card",
      "card.number": "invalid_card_number",
      "card.expiry": "invalid_value",
    });
    expect(service.ran).toEqual([]);
  });

  test("no rule judges a field of a wrong shape, or a field that depends on it", async () => {
    const chip = { ...card, aid: undefined };
    expect(codesOf((await run({ ...sale, card: chip, paymentType: 5 })).body)).toEqual({ paymentType: "wrong_type" });
    expect(codesOf((await run({ ...sale, card: "4111" })).body)).toEqual({ card: "wrong_type" });
    const reversal = { command: "REVERSAL", reqId, originalReqId: 5 };
    expect(codesOf((await run(reversal)).body)).toEqual({ originalReqId: "wrong_type" });
  });

  test("a registered device does not count as a card number, whatever else is wrong", async () => {
    const deviceId = service.registeredDeviceId;
    expect(codesOf((await run({ ...sale, deviceId, surprise: 1 })).body)).toEqual({ surprise: "unknown_field" });
    const { body } = await run({ ...sale, deviceId: "4242424242424242", surprise: 1 });
    expect(codesOf(body)).toEqual({ surprise: "unknown_field", deviceId: "card_number_in_clear" });
  });

  test("of an unknown command, fields that no command has are named, too", async () => {
    const { body } = await run({
      command: "CREDIT",
      reqId: "order-1",
      amount: 5,
      tid: "T1",
      card: { pin: 1 },
      more: 1,
    });
    expect(codesOf(body)).toEqual({
      command: "invalid_value",
      amount: "wrong_type",
      "card.pin": "unknown_field",
      more: "unknown_field",
      reqId: "invalid_req_id",
    });
  });

  test("a field of another command is unknown", async () => {
    const { body } = await run({ command: "LOGON", reqId, tid: "T1", mid: "M1", amount: "1" });
    expect(codesOf(body)).toEqual({ amount: "unknown_field" });
  });

  test("__proto__ is an unknown field", async () => {
    const body = `{"command":"LOGON","reqId":"${reqId}","tid":"T1","mid":"M1","__proto__":{"x":1}}`;
    const answer = await service.call("POST", "/v1/commands", {
      body,
      headers: { "content-type": "application/json" },
    });
    expect(answer.status).toBe(400);
    expect(Object.entries(codesOf(answer.body))).toEqual([["__proto__", "unknown_field"]]);
  });

  test("extraData may hold exactly 4 KiB", async () => {
    expect((await run({ ...sale, extraData: "é".repeat(2048) })).status).toBe(200);
  });

  test("a refusal by the ledger has its fields and its code", async () => {
    const message = "amount must be above zero.";
    service.fails("run", badFields([{ field: "amount", code: "invalid_amount", message }]));
    const { status, body } = await run(sale);
    expect(status).toBe(400);
    expect(body).toMatchObject({
      type: "urn:paybell:error:invalid_amount",
      title: "The amount is not valid",
      status: 400,
      code: "invalid_amount",
      detail: message,
      errors: [{ field: "amount", code: "invalid_amount", message }],
    });
    expect(body["remedy"]).toMatch(/^Send a string/);
    expect(body["instance"]).toMatch(/^urn:uuid:[0-9a-f-]{36}$/);
  });

  test("503 says after how many seconds to repeat", async () => {
    service.fails("run", new ServiceError("unavailable"));
    const { status, headers } = await run(sale);
    expect(status).toBe(503);
    expect(headers.get("retry-after")).toBe("1");
  });

  test("neither the log nor a refusal shows the card", async () => {
    // Digits alone may be those of an id, a port or a duration.
    const number = "4x".repeat(20);
    const { text } = await run({ ...sale, card: { ...card, token: "tok_".repeat(100), number } });
    expect(text).toContain("card.number");
    for (const shown of [text, service.logged]) {
      expect(shown).not.toContain("4x");
      expect(shown).not.toContain("tok_tok");
    }
  });
});

describe("GET /v1/transactions", () => {
  test("finds a transaction by its id and by its reqId, in any case", async () => {
    const { body: made } = await run(sale);
    const id = String(made["id"]);
    for (const path of [`/${id}`, `/${id.toUpperCase()}`, `?reqId=${reqId}`, `?reqId=${reqId.toLowerCase()}`]) {
      expect(await service.call("GET", `/v1/transactions${path}`)).toMatchObject({ status: 200, body: made });
    }
  });

  test("an unknown id, a malformed one and another partner's are the same 404", async () => {
    const { body } = await run(sale);
    const answers = await Promise.all([
      service.call("GET", `/v1/transactions/${body["id"]}`, { key: otherApiKey }),
      service.call("GET", `/v1/transactions?reqId=${reqId}`, { key: otherApiKey }),
      service.call("GET", "/v1/transactions/0195f000-0000-7000-8000-000000000000"),
      service.call("GET", "/v1/transactions/1"),
    ]);
    for (const answer of answers) expect(answer).toMatchObject({ status: 404, body: { code: "not_found" } });
    const [one, , ...rest] = answers.map(({ body: { instance: _, ...problem } }) => problem);
    for (const problem of rest) expect(problem).toEqual(one);
  });

  test("of a decline that was let stand, the chain says what its partner was told", async () => {
    const { body: made } = await run(sale);
    for (const one of service.transactions) {
      Object.assign(one, { reversal: "stands" });
      Object.assign(one.facts.fields, { status: "ERROR" });
    }
    const { body } = await service.call("GET", `/v1/transactions/${made["id"]}`);
    expect(body).toMatchObject({ status: "ERROR", chain: [{ status: "ERROR" }] });
  });

  test("the query must be a reqId and nothing else", async () => {
    expect(codesOf((await service.call("GET", "/v1/transactions")).body)).toEqual({ reqId: "missing_field" });
    expect(codesOf((await service.call("GET", `/v1/transactions?reqId=${reqId}&x=1`)).body)).toEqual({
      x: "unknown_field",
    });
    expect(codesOf((await service.call("GET", `/v1/transactions?reqId=a&reqId=b`)).body)).toEqual({
      reqId: "wrong_type",
    });
  });
});

import { randomUUID } from "node:crypto";
import { beforeEach, describe, expect, test } from "vitest";
import { type ErrorCode, errors } from "../packages/server/src/errors.ts";
import { reportedSale, sale } from "./support/commands.ts";
import { countRows } from "./support/rows.ts";
import { type HttpAnswer, serviceOfFile } from "./support/service.ts";

// Production, because only the sandbox allows http:// and loopback callbacks.
const service = await serviceOfFile({ sandbox: false });
const callback = { callBackUrl: "https://203.0.113.10/ipn", callbackAddresses: ["203.0.113.0/24"] };
const partner = await service.register(callback);
const other = await service.register(callback);
// Notifications of valid commands are stored and not sent: no attempt is made while another test counts the rows.
for (const { id } of [partner, other]) {
  const paused = await service.operator("POST", `/operator/v1/partners/${id}/pause`);
  expect(paused.status, paused.text).toBe(200);
}

const tables = ["transactions", "notifications", "pending", "parked", "attempts", "terminals"];
let before: Record<string, number>;
beforeEach(async () => {
  before = await countRows(service.database, tables);
});

/** Refused with this code: every invalid field is named with its remedy, and nothing is half done. */
async function expectRefusal(answer: HttpAnswer, code: ErrorCode, fields: Readonly<Record<string, ErrorCode>> = {}) {
  expect(answer.body, answer.text).toMatchObject({ code });
  expect(answer.status).toBe(errors[code].status);
  expect(answer.headers.get("content-type")).toBe("application/problem+json");
  expect(answer.body).toMatchObject({
    type: `urn:paybell:error:${code}`,
    title: errors[code].title,
    remedy: errors[code].remedy,
    instance: expect.stringMatching(/^urn:uuid:/),
  });
  const named = (answer.body["errors"] ?? []) as { field: string; code: string; message: string }[];
  expect(Object.fromEntries(named.map((one) => [one.field, one.code]))).toEqual(fields);
  for (const { message } of named) expect(message).toMatch(/^\S.*\.$/s);
  expect(await countRows(service.database, tables)).toEqual(before);
}

const run = (command: unknown) => partner.call("POST", "/v1/commands", { json: command });
const visa = "4111111111111111";

type Change = Readonly<Record<string, unknown>> & { readonly card?: Readonly<Record<string, unknown>> | undefined };

/** One of each code: all forms of each rule are in the tests of `commands/`. */
const cases: readonly [code: ErrorCode, field: string, change: Change][] = [
  ["unknown_field", "surprise", { surprise: "1" }],
  ["unknown_field", "card.pin", { card: { pin: "1234" } }],
  ["missing_field", "amount", { amount: undefined }],
  ["missing_field", "card", { card: undefined }],
  ["missing_field", "card.token", { card: { token: undefined } }],
  ["wrong_type", "amount", { amount: 150_000 }],
  ["wrong_type", "extraData", { extraData: { table: 4 } }],
  ["invalid_amount", "amount", { amount: "1.234", currency: "USD" }],
  ["invalid_currency", "currency", { currency: "XYZ" }],
  ["invalid_req_id", "reqId", { reqId: "01a1fbc4-eaa6-760c-a760-5e0c277996e5" }],
  ["insecure_callback_url", "callBackUrl", { callBackUrl: "http://203.0.113.10/" }],
  ["address_not_whitelisted", "callBackUrl", { callBackUrl: "https://198.51.100.1/" }],
  ["address_not_whitelisted", "callBackUrl", { callBackUrl: "https://2130706433/" }],
  ["invalid_callback_url", "callBackUrl", { callBackUrl: "https://me:secret@203.0.113.10/" }],
  ["delimiter_in_signed_field", "merchantTransId", { merchantTransId: "order-1&status=SUCCESS" }],
  ["invalid_text", "billId", { billId: "\ud83d" }],
  ["card_number_in_clear", "extraData", { extraData: '{"note": "4\\u0031111111 11111111"}' }],
  ["card_number_in_clear", "card.holder", { card: { holder: visa } }],
  ["invalid_card_number", "card.number", { card: { number: "411111111***1111" } }],
  ["scheme_contradicts_aid", "card.scheme", { card: { scheme: "JCB" } }],
  ["aid_required", "card.aid", { card: { aid: undefined } }],
  ["invalid_value", "card.swipeType", { card: { swipeType: "X" } }],
  ["unknown_test_card", "card.token", { card: { token: "tok_unknown" } }],
  ["too_long", "extraData", { extraData: "é".repeat(2_049) }],
];

describe("a Sale is refused, with nothing half done, for", () => {
  test.each(cases)("%s of %s: %j", async (code, field, change) => {
    const noCard = "card" in change && change.card === undefined;
    const command = noCard ? { ...sale(), card: undefined } : sale({ ...change, card: change.card ?? {} });
    await expectRefusal(await run(command), code, { [field]: code });
  });

  test("a full card number as card.number, which is neither masked nor to be sent at all", async () => {
    const { status, text, body } = await run(sale({ card: { number: visa } }));
    expect(status).toBe(400);
    expect(body["errors"]).toMatchObject([
      { field: "card.number", code: "card_number_in_clear" },
      { field: "card.number", code: "invalid_card_number" },
    ]);
    expect(text).not.toContain(visa);
    expect(await countRows(service.database, tables)).toEqual(before);
  });

  test("several things at once, each with its own code", async () => {
    const command = sale({ amount: "0", currency: "usd", billId: "\u0000", card: { scheme: "AMEX" } });
    await expectRefusal(await run(command), "invalid_request", {
      amount: "invalid_amount",
      currency: "invalid_currency",
      billId: "invalid_text",
      "card.scheme": "scheme_contradicts_aid",
    });
  });
});

describe("an object of another partner", () => {
  test("is as unknown as what does not exist", async () => {
    const { body } = await other.run(sale({ tid: "T0000077" }));
    before = await countRows(service.database, tables);
    const notificationId = String((body["notification"] as { id: string }).id);
    const unknown = randomUUID();
    const questions = (id: string, notification: string) => [
      partner.call("GET", `/v1/transactions/${id}`),
      partner.call("GET", `/v1/notifications/${notification}`),
      partner.call("POST", `/v1/notifications/${notification}/redeliver`, { json: {} }),
      run({ command: "VOID", reqId: randomUUID(), transactionId: id }),
    ];
    const foreign = await Promise.all(questions(String(body["id"]), notificationId));
    const missing = await Promise.all(questions(unknown, unknown));
    for (const [index, answer] of foreign.entries()) {
      expect(answer).toMatchObject({ status: 404, body: { code: "not_found" } });
      const { instance: _, ...shown } = answer.body;
      expect(missing[index]?.body).toMatchObject(shown);
    }
  });
});

test("an unknown command is answered with the known ones", async () => {
  const { body } = await run({ ...sale(), command: "sale" });
  expect(body["errors"]).toContainEqual(
    expect.objectContaining({ field: "command", message: expect.stringMatching(/must be one of SALE, VOID, .*LOGON/) }),
  );
});

describe("a report takes its good items and names the bad ones", () => {
  const bad: readonly [string, Readonly<Record<string, unknown>>, ErrorCode, string][] = [
    ["an unknown partner", { partnerId: randomUUID() }, "unknown_partner", "partnerId"],
    ["an unknown command", { command: "SALEE" }, "invalid_value", "command"],
    ["an unknown field", { surprise: "1" }, "unknown_field", "surprise"],
    ["no status", { status: undefined }, "missing_field", "status"],
    ["a wrong type", { amount: 1 }, "wrong_type", "amount"],
    ["an amount of 0", { amount: "0" }, "invalid_amount", "amount"],
    ["SUCCESS without 00", { isoResponseCode: "51" }, "invalid_value", "status"],
    ["a full card number", { cardNumber: visa }, "invalid_request", "cardNumber"],
    ["a card number in extraData", { extraData: `{"pan":"${visa}"}` }, "card_number_in_clear", "extraData"],
    ["NUL", { billId: "\u0000" }, "invalid_text", "billId"],
    ["a reqId that is no UUID v4", { reqId: "order-1" }, "invalid_req_id", "reqId"],
    ["a time that does not exist", { transDateTime: "20260230120000" }, "invalid_value", "transDateTime"],
    ["a settlement's field in a Sale", { saleQuantity: "1" }, "unknown_field", "saleQuantity"],
    ["an http:// callback", { callBackUrl: "http://203.0.113.10/" }, "insecure_callback_url", "callBackUrl"],
  ];

  test("in their order, wherever they are", async () => {
    const good = bad.map(() => reportedSale(partner.id));
    const completions = bad.flatMap(([, change], index) => [reportedSale(partner.id, change), good[index]]);
    const answer = await service.operator("POST", "/operator/v1/completions", { completions });
    expect(answer.status).toBe(200);
    interface Result {
      readonly result: string;
      readonly problem?: { readonly code: string; readonly errors: readonly { readonly field: string }[] };
    }
    const results = answer.body["results"] as Result[];
    expect(results.map(({ result }) => result)).toEqual(bad.flatMap(() => ["refused", "accepted"]));
    for (const [index, [name, , code, field]] of bad.entries()) {
      const { problem } = results[2 * index] ?? {};
      expect(
        problem?.errors.map((one) => one.field),
        name,
      ).toContain(`completions[${2 * index}].${field}`);
      if (code !== "invalid_request") expect(problem?.code, name).toBe(code);
    }
    const after = await countRows(service.database, tables);
    expect(after["transactions"]).toBe((before["transactions"] ?? 0) + good.length);
    expect(after["notifications"]).toBe((before["notifications"] ?? 0) + good.length);
    expect(answer.text).not.toContain(visa);
  });

  test("but a body that is not a list of at most 1,000 items is refused as a whole", async () => {
    const report = (json: unknown) => service.operator("POST", "/operator/v1/completions", json);
    await expectRefusal(await report({ completions: "all" }), "wrong_type", { completions: "wrong_type" });
    const many = Array.from({ length: 1_001 }, () => ({}));
    await expectRefusal(await report({ completions: many }), "invalid_value", { completions: "invalid_value" });
  });
});

import { randomUUID } from "node:crypto";
import { afterAll, beforeEach, describe, expect, test } from "vitest";
import { type ErrorCode, errors } from "../packages/server/src/errors.ts";
import { reportedSale, sale } from "./support/commands.ts";
import { countRows } from "./support/rows.ts";
import { callHttp, type HttpAnswer, startTestService } from "./support/service.ts";

// Production, because only the sandbox allows http:// and loopback callbacks.
const service = await startTestService({ sandbox: false });
const callback = { callBackUrl: "https://203.0.113.10/ipn", callbackAddresses: ["203.0.113.0/24"] };
const partner = await service.register(callback);
const other = await service.register(callback);
// Notifications of valid commands are stored and not sent: no attempt is made while another test counts the rows.
for (const { id } of [partner, other]) {
  const paused = await service.operator("POST", `/operator/v1/partners/${id}/pause`);
  expect(paused.status, paused.text).toBe(200);
}
afterAll(() => service.stop());

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

interface Case {
  readonly name: string;
  readonly change: Readonly<Record<string, unknown>> & {
    readonly card?: Readonly<Record<string, unknown>> | undefined;
  };
  readonly code: ErrorCode;
  readonly field: string;
}

function cases(code: ErrorCode, field: string, ...values: readonly [string, Case["change"]][]): Case[] {
  return values.map(([name, change]) => ({ name, change, code, field }));
}

const amounts = ["0", "0.00", "-1", "+1", "1e3", "01", " 5", "5 ", "1.", ".5", "1,5", "0x10", "NaN", "１２"];

const commandCases: readonly Case[] = [
  ...cases("unknown_field", "surprise", ["an unknown field", { surprise: "1" }]),
  ...cases("unknown_field", "card.pin", ["an unknown field of the card", { card: { pin: "1234" } }]),
  ...cases("unknown_field", "callbackUrl", ["a field misspelt", { callbackUrl: "https://203.0.113.10/ipn" }]),
  ...cases("missing_field", "amount", ["no amount", { amount: undefined }], ["an empty amount", { amount: "" }]),
  ...cases("missing_field", "card", ["no card", { card: undefined }]),
  ...cases("missing_field", "card.token", ["no token", { card: { token: undefined } }]),
  ...cases("missing_field", "reqId", ["no reqId", { reqId: undefined }]),
  ...cases("wrong_type", "amount", ["a number as amount", { amount: 150_000 }], ["null", { amount: null }]),
  ...cases("wrong_type", "extraData", ["an object as extraData", { extraData: { table: 4 } }]),
  ...cases(
    "invalid_amount",
    "amount",
    ...amounts.map((amount): [string, Case["change"]] => [`"${amount}"`, { amount }]),
  ),
  ...cases(
    "invalid_amount",
    "amount",
    ["three decimals of USD", { amount: "1.234", currency: "USD" }],
    ["a decimal of VND", { amount: "1.5" }],
    ["13 digits", { amount: "1234567890123" }],
    ["13 digits in cents", { amount: "12345678901.00", currency: "USD" }],
  ),
  ...cases(
    "invalid_currency",
    "currency",
    ["currency vnd", { currency: "vnd" }],
    ["currency XYZ", { currency: "XYZ" }],
  ),
  ...cases(
    "invalid_req_id",
    "reqId",
    ["a reqId of words", { reqId: "order-1" }],
    ["a UUID v1", { reqId: "2c5ea4c0-4067-11e9-8bad-9b1deb4d3b7d" }],
    ["a UUID v7", { reqId: "01a1fbc4-eaa6-760c-a760-5e0c277996e5" }],
  ),
  ...cases("insecure_callback_url", "callBackUrl", ["an http:// callback", { callBackUrl: "http://203.0.113.10/" }]),
  ...cases(
    "address_not_whitelisted",
    "callBackUrl",
    ["an address outside the list", { callBackUrl: "https://198.51.100.1/" }],
    ["a loopback address", { callBackUrl: "https://127.0.0.1/" }],
    ["a loopback address as one number", { callBackUrl: "https://2130706433/" }],
    ["a mapped loopback address", { callBackUrl: "https://[::ffff:127.0.0.1]/" }],
    ["a metadata service", { callBackUrl: "https://169.254.169.254/latest" }],
  ),
  ...cases(
    "invalid_callback_url",
    "callBackUrl",
    ["a password in the URL", { callBackUrl: "https://me:secret@203.0.113.10/" }],
    ["a fragment in the URL", { callBackUrl: "https://203.0.113.10/#part" }],
    ["a file URL", { callBackUrl: "file:///etc/passwd" }],
  ),
  ...cases(
    "delimiter_in_signed_field",
    "merchantTransId",
    ["& in a signed field", { merchantTransId: "order-1&status=SUCCESS" }],
    ["a line end in a signed field", { merchantTransId: "order-1\n" }],
  ),
  ...cases("delimiter_in_signed_field", "tid", ["& in the tid", { tid: "T&1" }]),
  ...cases(
    "invalid_text",
    "billId",
    ["NUL", { billId: "bill\u0000" }],
    ["half of a surrogate pair", { billId: "\ud83d" }],
  ),
  ...cases(
    "card_number_in_clear",
    "extraData",
    ["a card number in JSON text", { extraData: `{"card": {"number": "${visa}"}}` }],
    ["one with an escaped digit", { extraData: '{"note": "4\\u0031111111 11111111"}' }],
  ),
  ...cases(
    "card_number_in_clear",
    "billId",
    ["a card number", { billId: visa }],
    ["one with dashes", { billId: "4111-1111-1111-1111" }],
    ["one in a sentence", { billId: "paid by 5555 5555 5555 4444, thanks" }],
  ),
  ...cases("card_number_in_clear", "card.holder", ["a card number as holder", { card: { holder: visa } }]),
  ...cases("invalid_card_number", "card.number", [
    "a mask that shows too much",
    { card: { number: "411111111***1111" } },
  ]),
  ...cases("scheme_contradicts_aid", "card.scheme", ["JCB with an AID of VISA", { card: { scheme: "JCB" } }]),
  ...cases("aid_required", "card.aid", ["a chip without AID", { card: { aid: undefined } }]),
  ...cases("invalid_value", "card.swipeType", ["an unknown swipeType", { card: { swipeType: "X" } }]),
  ...cases("invalid_value", "paymentType", ["an unknown paymentType", { paymentType: "cash" }]),
  ...cases("unknown_test_card", "card.token", ["a token that is no test card", { card: { token: "tok_unknown" } }]),
  ...cases("too_long", "extraData", ["extraData over 4 KiB", { extraData: "é".repeat(2_049) }]),
  ...cases("too_long", "tid", ["a tid that is too long", { tid: "T".repeat(17) }]),
];

describe("a Sale is refused, with nothing half done, for", () => {
  test.each(commandCases)("$name: $code of $field", async ({ change, code, field }) => {
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

describe("a message is refused as a whole", () => {
  const post = (body: string, type = "application/json") =>
    partner.call("POST", "/v1/commands", { body, headers: { "content-type": type } });

  test.each([
    ["malformed JSON", '{"command": "SALE"'],
    ["a list", "[]"],
    ["a duplicate key", '{"command": "LOGON", "command": "SALE"}'],
    ["a duplicate key, once escaped", '{"amount": "1", "\\u0061mount": "2"}'],
  ])("for %s", async (_, body) => {
    await expectRefusal(await post(body), "invalid_json");
  });

  test("for another media type", async () => {
    await expectRefusal(await post(JSON.stringify(sale()), "text/plain"), "unsupported_media_type");
  });

  test("over 64 KiB", async () => {
    await expectRefusal(await post(JSON.stringify(sale({ surprise: "x".repeat(65_536) }))), "body_too_large");
  });

  test("for NUL in a searched value, which the database does not accept", async () => {
    await expectRefusal(await partner.call("GET", "/v1/transactions?reqId=%00"), "invalid_text", {
      reqId: "invalid_text",
    });
    const terminals = `/operator/v1/partners/${partner.id}/terminals?after=%00`;
    await expectRefusal(await service.operator("GET", terminals), "invalid_text", { after: "invalid_text" });
    await expectRefusal(await service.operator("GET", "/operator/v1/notifications?q=a%00"), "invalid_text", {
      q: "invalid_text",
    });
    const redeliveries = { filter: { reason: "\u0000" }, dryRun: true };
    await expectRefusal(await service.operator("POST", "/operator/v1/redeliveries", redeliveries), "invalid_text", {
      "filter.reason": "invalid_text",
    });
  });

  test("for an unknown route or method", async () => {
    await expectRefusal(await partner.call("GET", "/v1/refunds"), "not_found");
    const wrongMethod = await partner.call("DELETE", "/v1/commands");
    await expectRefusal(wrongMethod, "method_not_allowed");
    expect(wrongMethod.headers.get("allow")).toContain("POST");
  });
});

describe("a caller is refused", () => {
  const call = (key: string | null, path = "/v1/commands") =>
    callHttp(service.baseUrl, "POST", path, { key, json: sale() });

  test("without a key, with a wrong one, and with the other role's", async () => {
    const answers = await Promise.all([
      call(null),
      call("pb_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"),
      call("operator-token-of-the-tests-0123456789"),
      call(partner.secrets.apiKey, "/operator/v1/completions"),
      call(null, "/operator/v1/redeliveries"),
    ]);
    for (const answer of answers) {
      await expectRefusal(answer, "unauthorized");
      expect(answer.headers.get("www-authenticate")).toBe("Bearer");
    }
  });

  test("from an address that is not on the partner's list", async () => {
    const elsewhere = await service.register({
      callBackUrl: "https://203.0.113.10/ipn",
      callbackAddresses: ["203.0.113.0/24"],
      callingAddresses: ["198.51.100.0/24"],
    });
    await expectRefusal(await elsewhere.run(sale()), "address_not_allowed");
    const forwarded = await elsewhere.run(sale(), { "x-forwarded-for": "198.51.100.7" });
    await expectRefusal(forwarded, "address_not_allowed");
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
    ];
    const foreign = await Promise.all(questions(String(body["id"]), notificationId));
    const missing = await Promise.all(questions(unknown, unknown));
    for (const [index, answer] of foreign.entries()) {
      expect(answer).toMatchObject({ status: 404, body: { code: "not_found" } });
      const { instance: _, ...shown } = answer.body;
      expect(missing[index]?.body).toMatchObject(shown);
    }
  });

  test("and a reqId that was used with another body is refused", async () => {
    const command = sale();
    await partner.run(command);
    before = await countRows(service.database, tables);
    await expectRefusal(await run({ ...command, amount: "150001" }), "req_id_reused");
    await expectRefusal(await run({ ...command, extraData: " " }), "req_id_reused");
  });

  test("and a terminal that is known under another mid is refused", async () => {
    await partner.run(sale({ tid: "T0000009" }));
    before = await countRows(service.database, tables);
    await expectRefusal(await run(sale({ tid: "T0000009", mid: "M2" })), "terminal_mid_mismatch");
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

test("a setting with text that no table can hold is refused", async () => {
  const path = `/operator/v1/partners/${partner.id}`;
  const json = { callBackUrl: "https://203.0.113.10/\ud83d" };
  await expectRefusal(await service.operator("PATCH", path, json), "invalid_callback_url", {
    callBackUrl: "invalid_callback_url",
  });
});

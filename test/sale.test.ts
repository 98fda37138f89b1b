import { cardIpnFields, contractVersion } from "@paybell/contract";
import { expect, test } from "vitest";
import { sale } from "./support/commands.ts";
import { ipnOf } from "./support/receiver.ts";
import { serviceOfFile } from "./support/service.ts";

const uuidV7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
const sixDigits = /^(?!000000)\d{6}$/;

const service = await serviceOfFile();
const partner = await service.register();
const terminal = {
  mid: "M00000000000001",
  merchantId: "MERCHANT-7",
  merchantName: "Phở & Bánh mì",
  merchantAddress: "1 Lê Lợi, Huế",
  deviceId: "SN-0001",
  appName: "Till 3",
};
const registered = await service.operator("PUT", `/operator/v1/partners/${partner.id}/terminals/T0000001`, terminal);
expect(registered.status, registered.text).toBe(200);

/** As an IPN writes it. */
function secondOf(ms: number): number {
  return Number(new Date(ms).toISOString().replaceAll(/[-T:]|\.\d+Z/g, ""));
}

test("a Sale goes in, and a verified IPN with every field of the table comes out", async () => {
  const startedMs = Date.now();
  const command = sale({
    billId: "bill-1",
    extraData: '{"table": 4, "note": "no ⟨ice⟩"}',
    paymentType: "card_mobile",
    card: { scheme: "VISA", holder: "NGUYEN VAN A", expiry: "12/29", tc: "TC0123456789ABCD" },
  });
  const answer = await partner.run(command);
  expect(answer.status, answer.text).toBe(200);
  const answeredMs = Date.now();
  const [delivery] = await partner.server.next(1);
  const ipn = ipnOf(delivery);

  expect(ipn).toEqual({
    aid: "A0000000031010",
    amount: "150000",
    appName: "Till 3",
    approveCode: expect.stringMatching(/^[0-9A-Z]{6}$/),
    batchNo: "000001",
    billId: "bill-1",
    cardHolder: "NGUYEN VAN A",
    cardNumber: "411111******1111",
    cardScheme: "VISA",
    currency: "VND",
    deviceId: "SN-0001",
    expDate: "12/29",
    extraData: '{"table": 4, "note": "no ⟨ice⟩"}',
    id: expect.stringMatching(uuidV7),
    invoiceNo: expect.stringMatching(sixDigits),
    isoResponseCode: "00",
    merchantAddress: "1 Lê Lợi, Huế",
    merchantId: "MERCHANT-7",
    merchantName: "Phở & Bánh mì",
    merchantTransId: "order-1",
    mid: "M00000000000001",
    paymentType: "card_mobile",
    refId: expect.stringMatching(/^\d{12}$/),
    reqId: command["reqId"],
    status: "SUCCESS",
    swipeType: "C",
    tc: "TC0123456789ABCD",
    tid: "T0000001",
    traceNo: expect.stringMatching(sixDigits),
    transDateTime: expect.stringMatching(/^\d{14}$/),
    transaction_type: "SALE",
    signature: expect.stringMatching(/^[0-9a-f]{64}$/),
  });
  expect(Object.keys(ipn)).toEqual(cardIpnFields.map(({ name }) => name));

  const { signature: _, ...unsigned } = ipn;
  const { command: told, createdAt, notification, ...fields } = answer.body;
  expect(fields).toEqual(unsigned);
  expect(told).toBe("SALE");
  expect(Number(ipn["transDateTime"])).toBeGreaterThanOrEqual(secondOf(startedMs));
  expect(Number(ipn["transDateTime"])).toBeLessThanOrEqual(secondOf(answeredMs));
  expect(Date.parse(String(createdAt))).toBeGreaterThanOrEqual(startedMs);
  expect(Date.parse(String(createdAt))).toBeLessThanOrEqual(answeredMs);
  expect(notification).toEqual({ id: delivery?.headers["webhook-id"], state: "pending" });
});

test("its POST carries the headers of the contract, and nothing but the sealed IPN", async () => {
  const answer = await partner.run(sale());
  const { id } = answer.body["notification"] as { id: string };
  const deliveries = await partner.server.until((all) => all.some(({ headers }) => headers["webhook-id"] === id));
  const delivery = deliveries.find(({ headers }) => headers["webhook-id"] === id);

  expect(delivery).toMatchObject({ method: "POST", path: "/ipn" });
  expect(delivery?.headers).toMatchObject({
    accept: "application/json",
    "content-type": "application/json",
    "content-length": String(delivery?.body.length),
    host: new URL(partner.server.url).host,
    "webhook-id": expect.stringMatching(uuidV7),
    "webhook-timestamp": expect.stringMatching(/^\d{10}$/),
    "webhook-signature": expect.stringMatching(/^v1,[A-Za-z0-9+/]{43}=$/),
    "paybell-attempt": "1",
    "paybell-command": "SALE",
    "paybell-contract": contractVersion,
    "paybell-key": expect.stringMatching(uuidV7),
  });
  expect(delivery?.headers).not.toHaveProperty("paybell-original-transaction");
  expect(delivery?.headers).not.toHaveProperty("paybell-out-of-order");
  const envelope = JSON.parse(String(delivery?.body)) as Record<string, unknown>;
  expect(Object.keys(envelope)).toEqual(["data"]);
  expect(envelope["data"]).toMatch(/^[A-Za-z0-9+/]+=*$/);
});

test("the transaction and its notification are found again, by id and by reqId", async () => {
  const command = sale({ reqId: "ABCDEF01-2345-4789-8ABC-DEF012345678" });
  const { body } = await partner.run(command);
  const { id: notificationId } = body["notification"] as { id: string };
  await partner.settled(notificationId, "accepted");
  const expected = { ...body, notification: { id: notificationId, state: "accepted" } };
  const byId = await partner.call("GET", `/v1/transactions/${String(body["id"])}`);
  const byReqId = await partner.call("GET", "/v1/transactions?reqId=abcdef01-2345-4789-8abc-def012345678");
  expect(byId.body).toMatchObject(expected);
  expect(byReqId.body).toEqual(byId.body);
  expect(body["reqId"]).toBe(command["reqId"]);
});

test("numbers of a terminal rise with each Sale, and every IPN has its own", async () => {
  const before = partner.server.deliveries.length;
  const answers = await Promise.all(Array.from({ length: 25 }, () => partner.run(sale())));
  const traces = answers.map(({ body }) => Number(body["traceNo"])).sort((a, b) => a - b);
  expect(traces.map((trace) => trace - (traces[0] ?? 0))).toEqual(traces.map((_, index) => index));
  await partner.server.until((all) => all.length >= before + 25);
  const sent = partner.server.deliveries.slice(before).map(({ received }) => received?.ipn.id);
  expect(sent.sort()).toEqual(answers.map(({ body }) => String(body["id"])).sort());
});

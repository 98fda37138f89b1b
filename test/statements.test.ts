import { randomUUID } from "node:crypto";
import { client } from "@paybell/partner/client";
import { afterAll, expect, test } from "vitest";
import { startTestService } from "./support/service.ts";

const service = await startTestService();
afterAll(() => service.stop());

const terminal = { tid: "T0000001", mid: "M00000000000001" };

test("a partner gets its batches, settlements and the statement of a day, each transaction with its IPN", async () => {
  const partner = await service.register({ timeZone: "Asia/Ho_Chi_Minh" });
  const run = async (command: Readonly<Record<string, unknown>>) => {
    const { status, text, body } = await partner.run({ reqId: randomUUID(), ...command });
    if (status !== 200) throw new Error(text);
    return body as { id: string; notification: { id: string } };
  };
  const card = { token: "tok_approve", number: "411111******1111", scheme: "VISA", swipeType: "M" };
  const sale = (amount: string, merchantTransId: string, token = card.token) =>
    run({ command: "SALE", amount, currency: "USD", merchantTransId, ...terminal, card: { ...card, token } });
  const kept = await sale("12.50", "order-1");
  const voided = await sale("7.50", "=2+2");
  await run({ command: "VOID", transactionId: voided.id });
  const declined = await sale("1.00", "order-3", "tok_decline_51");
  const settlement = await run({ command: "SETTLEMENT", merchantTransId: "settle-1", ...terminal });
  const reversed = await sale("3.00", "order-4");
  await run({ command: "REVERSAL", transactionId: reversed.id });

  const api = client({ baseUrl: service.baseUrl, apiKey: partner.secrets.apiKey });
  const totals = { saleQuantity: 2, saleTotalAmount: "20.00", voidQuantity: 1, voidTotalAmount: "7.50" };
  const batches = await api.listBatches({ tid: terminal.tid });
  expect(batches).toMatchObject({
    items: [{ ...terminal, batchNo: "000001", currency: "USD", ...totals, netAmount: "12.50" }],
    next: null,
  });
  expect(batches.items[0]).toMatchObject({
    settlementId: settlement.id,
    notificationId: settlement.notification.id,
  });
  expect((await api.listBatches({ tid: "T0000002" })).items).toEqual([]);
  expect((await api.listBatches({ to: "2026-01-01" })).items).toEqual([]);
  expect((await api.listBatches({ after: settlement.id })).items).toEqual([]);
  expect((await api.listSettlements()).items).toMatchObject([
    { id: settlement.id, status: "SUCCESS", batchNo: "000001", saleTotalAmount: "20.00", listed: 1 },
  ]);

  const { completedAt } = (await api.listSettlements()).items[0] ?? {};
  const date = new Date(Date.parse(completedAt ?? "") + 7 * 3_600_000).toISOString().slice(0, 10);
  expect((await api.listBatches({ from: date, to: date })).items).toHaveLength(1);
  const statement = await api.getStatement(date);
  expect(statement).toMatchObject({ date, timeZone: "Asia/Ho_Chi_Minh", isComplete: false });
  expect(
    statement.lines.map(({ kind, command, status, amount, movement }) => [kind, command, status, amount, movement]),
  ).toEqual([
    ["transaction", "SALE", "SUCCESS", "12.50", "12.50"],
    ["transaction", "SALE", "SUCCESS", "7.50", "7.50"],
    ["transaction", "VOID", "SUCCESS", "7.50", "-7.50"],
    ["transaction", "SALE", "ERROR", "1.00", "0.00"],
    ["transaction", "SETTLEMENT", "SUCCESS", "", ""],
    ["transaction", "SALE", "SUCCESS", "3.00", "3.00"],
    ["reversal", "SALE", "SUCCESS", "3.00", "-3.00"],
  ]);
  expect(statement.lines[0]).toMatchObject({ id: kept.id, notificationId: kept.notification.id, batchNo: "000001" });
  expect(statement.lines[3]).toMatchObject({ id: declined.id, isoResponseCode: "51" });
  expect(statement.totals).toMatchObject([
    { currency: "USD", saleQuantity: 3, saleTotalAmount: "23.00", reversedTotalAmount: "3.00", netAmount: "12.50" },
  ]);

  const csv = await partner.call("GET", `/v1/statements/${date}`, { headers: { accept: "text/csv" } });
  expect(csv.headers.get("content-type")).toBe("text/csv; charset=utf-8");
  const rows = csv.text.trimEnd().split("\r\n");
  expect(rows).toHaveLength(1 + 7 + 5);
  expect(rows[2]).toContain(",7.50,7.50,");
  expect(rows[2]).toContain(",'=2+2,");
  expect(rows[12]).toBe("total,,,,NET,,,USD,,12.50,,,,,,,,,,");
  const other = await service.register({ timeZone: "Asia/Ho_Chi_Minh" });
  const stranger = client({ baseUrl: service.baseUrl, apiKey: other.secrets.apiKey });
  expect((await stranger.getStatement(date)).lines).toEqual([]);
});

test("a day that is none, has not begun, or is no longer kept is refused", async () => {
  const partner = await service.register();
  const get = async (date: string) => (await partner.call("GET", `/v1/statements/${date}`)).body;
  expect(await get("2026-02-30")).toMatchObject({ status: 400, code: "invalid_value" });
  expect(await get("2999-01-01")).toMatchObject({ status: 400, errors: [{ field: "date" }] });
  expect(await get("2020-01-01")).toMatchObject({ status: 404, code: "not_found" });
  const { body } = await partner.call("GET", "/v1/batches?from=yesterday");
  expect(body).toMatchObject({ status: 400, errors: [{ field: "from" }] });
});

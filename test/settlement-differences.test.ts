import { randomUUID } from "node:crypto";
import { describe, expect, test } from "vitest";
import { queryHomes } from "./support/database.ts";
import { ipnOf } from "./support/receiver.ts";
import { eventually, serviceOfFile, type TestPartner } from "./support/service.ts";

const service = await serviceOfFile();

const batch = { tid: "T0000001", mid: "M00000000000001", batchNo: "000017" };
const entryOf = ({ reqId }: { reqId: string }) => ({ reqId, refNo: "417" });

function saleOf(partner: TestPartner) {
  const id = randomUUID();
  const money = { amount: "12.50", currency: "USD", isoResponseCode: "00", refId: "417" };
  return { partnerId: partner.id, externalId: id, command: "SALE", status: "SUCCESS", reqId: id, ...money, ...batch };
}

function settlementOf(partner: TestPartner, change: Readonly<Record<string, unknown>>) {
  const totals = { quantity: "2", saleQuantity: "2", saleTotalAmount: "25.00", voidQuantity: "0" };
  const external = { partnerId: partner.id, externalId: `settlement of ${partner.id}`, command: "SETTLEMENT" };
  return { ...external, status: "SUCCESS", transaction_time: "20260301233000", ...totals, ...batch, ...change };
}

interface Inspected {
  readonly id: string;
  readonly events: readonly { readonly kind: string; readonly at: string; readonly detail: unknown }[];
}

/** The settlement's notification, as the operator sees it. */
async function inspected(partner: TestPartner): Promise<Inspected> {
  const { body: found } = await service.operator(
    "GET",
    `/operator/v1/notifications?q=${encodeURIComponent(`settlement of ${partner.id}`)}`,
  );
  const [{ id } = { id: "" }] = found["items"] as { id: string }[];
  const { body } = await service.operator("GET", `/operator/v1/notifications/${id}`);
  return body as unknown as Inspected;
}

/** Moves the comparison's due time to now, and resolves once it was compared. */
async function compared(partner: TestPartner): Promise<void> {
  const compare = (text: string) => queryHomes(service.database, text, [partner.id]);
  const waiting = "WHERE partner_id = $1 AND compare_at IS NOT NULL";
  expect(await compare(`UPDATE transactions SET compare_at = now() ${waiting} RETURNING id`)).toHaveLength(1);
  await eventually("the settlement to be compared", async () => {
    const due = await compare(`SELECT id FROM transactions ${waiting}`);
    return due.length === 0 || undefined;
  });
}

async function counted(result: string): Promise<number> {
  const text = await service.service.metrics.text();
  return Number(new RegExp(`paybell_settlements_compared_total{result="${result}"} (\\d+)`).exec(text)?.[1] ?? 0);
}

describe("a settlement that a switch reported", () => {
  test("is sent as given; a difference from the ledger is an event that the operator sees with it", async () => {
    const partner = await service.register();
    const [first, second] = [saleOf(partner), saleOf(partner)];
    const stranger = { reqId: randomUUID(), refNo: "999" };
    const list = { settlementList: [entryOf(first), stranger] };
    await service.report([first, second, settlementOf(partner, { ...list, saleTotalAmount: "25.01" })]);
    const before = await counted("different");
    expect((await inspected(partner)).events).toEqual([]);
    await compared(partner);
    const { id, events } = await inspected(partner);
    expect(events).toEqual([
      {
        kind: "settlement_differs",
        at: expect.stringMatching(/^\d{4}-\d{2}-\d{2}T/),
        detail: {
          externalId: `settlement of ${partner.id}`,
          ...batch,
          values: { saleTotalAmount: { reported: "25.01", ledger: "25.00" } },
          notInLedger: { count: 1, reqIds: [stranger.reqId] },
          notListed: { count: 1, reqIds: [second.reqId] },
        },
      },
    ]);
    await expect.poll(() => counted("different")).toBe(before + 1);
    const settled = (await partner.server.next(3)).find(({ received }) => received?.headers.command === "SETTLEMENT");
    expect(ipnOf(settled)).toMatchObject({ saleTotalAmount: "25.01", settlementList: list.settlementList });
    const { body } = await partner.call("GET", `/v1/notifications/${id}`);
    expect(body, "what the partner sees").not.toHaveProperty("events");
  });

  test("that equals the ledger causes no event, whatever was reported shortly after it", async () => {
    const partner = await service.register();
    const [first, second, voided] = [saleOf(partner), saleOf(partner), saleOf(partner)];
    const totals = { saleQuantity: "3", saleTotalAmount: "37.50", voidQuantity: "1", voidTotalAmount: "12.5" };
    const settlementList = [entryOf(second), entryOf(first)];
    await service.report([first, settlementOf(partner, { settlementList, ...totals, totalAmount: "50" })]);
    await service.report([
      { ...saleOf(partner), command: "VOID", originalExternalId: voided.externalId },
      voided,
      { ...second, transDateTime: "2026-03-02T06:29:00+07:00" },
      { ...saleOf(partner), transDateTime: "20260301233100" },
    ]);
    const before = await counted("same");
    await compared(partner);
    expect((await inspected(partner)).events).toEqual([]);
    await expect.poll(() => counted("same")).toBe(before + 1);
  });

  test("counts with it what the terminal did here", async () => {
    const partner = await service.register();
    const { amount, currency, tid, mid } = { ...saleOf(partner) };
    const card = { token: "tok_approve", number: "411111******1111", swipeType: "C", aid: "A0000000031010" };
    const reqId = randomUUID();
    const sold = await partner.run({ command: "SALE", reqId, amount, currency, tid, mid, merchantTransId: "o", card });
    expect(sold.body).toMatchObject({ status: "SUCCESS", batchNo: "000001" });
    const reported = { ...saleOf(partner), batchNo: "000001" };
    const settlementList = [{ reqId, refNo: sold.body["refId"] }, entryOf(reported)];
    await service.report([reported, settlementOf(partner, { settlementList, batchNo: "000001" })]);
    await compared(partner);
    expect((await inspected(partner)).events).toEqual([]);
  });
});

import { randomUUID } from "node:crypto";
import { afterAll, expect, test } from "vitest";
import { next } from "../packages/server/src/acquirer/simulator/behaviour.ts";
import { chainSchema, merchantsSchema, moneyRecords } from "../packages/server/src/http/payments/money.ts";
import { reportedSale, sale } from "./support/commands.ts";
import { queryHomes } from "./support/database.ts";
import { eventually, startTestService } from "./support/service.ts";

const service = await startTestService();
const partner = await service.register();
afterAll(async () => {
  // A stop waits for the acquirer's answers, and that to the last settlement never comes.
  await service.acquirer.close();
  await service.stop();
});

const get = async (path: string) => (await service.operator("GET", `/operator/v1/${path}`)).body;
const itemsOf = async (path: string) => (await get(path))["items"] as Readonly<Record<string, unknown>>[];

/** A Sale whose Reversal the acquirer refuses for good. */
async function parked(tid: string): Promise<string> {
  const { body } = await partner.run(sale({ tid }));
  service.acquirer.behave(next("REVERSAL", { declines: "12" }));
  await partner.run({ command: "REVERSAL", reqId: randomUUID(), transactionId: body["id"] });
  return String(body["id"]);
}

test("a parked Reversal is retried, or resolved with a reason, once", async () => {
  const [retried, resolved] = [await parked("T8000001"), await parked("T8000002")];
  const states = async (id: string) => (await get(`reversals/${id}`))["state"];
  expect(await states(retried)).toBe("PARKED");
  expect((await itemsOf(`reversals?partner=${partner.id}&state=PARKED`)).map(({ id }) => id)).toEqual([
    resolved,
    retried,
  ]);
  const gauge = async () =>
    /^paybell_reversals_parked (\d+)$/m.exec((await service.operator("GET", "/metrics")).text)?.[1];
  await eventually("the gauge", async () => ((await gauge()) === "2" ? true : undefined));
  const retry = (json?: unknown) => service.operator("POST", `/operator/v1/reversals/${retried}/retry`, json);
  expect(await retry()).toMatchObject({ status: 200 });
  await eventually("the Reversal to be done", async () => ((await states(retried)) === "DONE" ? true : undefined));
  expect(await retry()).toMatchObject({ status: 400, body: { errors: [{ field: "reason" }] } });
  const reason = "the acquirer still has it";
  const fails = service.acquirer.behave(({ command }) => (command === "REVERSAL" ? { declines: "96" } : undefined));
  expect(await retry({ reason })).toMatchObject({ status: 200, body: { state: "PENDING" } });
  // Nobody is told that it is reversed until that is known again.
  for (const shown of [
    await get(`transactions/${retried}`),
    (await partner.call("GET", `/v1/transactions/${retried}`)).body,
  ])
    expect(shown).toMatchObject({ reversal: "pending" });
  const voiding = await partner.run({ command: "VOID", reqId: randomUUID(), transactionId: retried });
  expect(voiding).toMatchObject({ status: 409, body: { code: "in_doubt" } });
  expect(await retry({ reason })).toMatchObject({ status: 409, body: { code: "reversal_not_parked" } });
  fails();
  // Its next try is due in half a minute.
  await queryHomes(service.database, "UPDATE reversals SET due_at = now() WHERE state = 'PENDING'");
  await eventually("it to be done again", async () => ((await states(retried)) === "DONE" ? true : undefined));
  const resolve = (json: unknown) => service.operator("POST", `/operator/v1/reversals/${resolved}/resolve`, json);
  expect(await resolve({})).toMatchObject({ status: 400 });
  expect(await resolve({ reason: "the acquirer said so" })).toMatchObject({ status: 200, body: { state: "DONE" } });
  expect(await resolve({ reason: "again" })).toMatchObject({ status: 409 });
  const again = await partner.run({ command: "VOID", reqId: randomUUID(), transactionId: resolved });
  expect(again).toMatchObject({ status: 409, body: { code: "already_reversed" } });
  await eventually("the events", async () => {
    const kinds = (await itemsOf(`events?partner=${partner.id}`)).map(({ kind }) => kind);
    return kinds.includes("reversal_resolved") && kinds.includes("reversal_retried") ? true : undefined;
  });
  const [event] = await itemsOf(`events?partner=${partner.id}&state=reversal_resolved`);
  expect(event).toMatchObject({ subjectId: resolved, detail: { reason: "the acquirer said so", by: "operator" } });
  expect(await get(`events/${event?.["id"]}`)).toEqual(event);
});

test("a Reversal that the acquirer refuses for good ends, once, and its Sale stands", async () => {
  const tid = "T8000013";
  const id = await parked(tid);
  const voiding = () => partner.run({ command: "VOID", reqId: randomUUID(), transactionId: id });
  expect(await voiding()).toMatchObject({ status: 409, body: { code: "in_doubt" } });
  const stands = (json: unknown) => service.operator("POST", `/operator/v1/reversals/${id}/stands`, json);
  expect(await stands({})).toMatchObject({ status: 400 });
  const reason = "the bank has settled it";
  for (let nth = 0; nth < 2; nth += 1) {
    expect(await stands({ reason })).toMatchObject({ status: 200, body: { state: "STANDS" } });
  }
  for (const [action, code] of [
    ["retry", "reversal_not_parked"],
    ["resolve", "reversal_not_parked"],
  ] as const) {
    const other = await service.operator("POST", `/operator/v1/reversals/${id}/${action}`, { reason });
    expect(other).toMatchObject({ status: 409, body: { code } });
  }
  const { body } = await partner.call("GET", `/v1/transactions/${id}`);
  expect(body).toMatchObject({ status: "SUCCESS", reversal: "stands", batch: { state: "open" } });
  const reversing = await partner.run({ command: "REVERSAL", reqId: randomUUID(), transactionId: id });
  expect(reversing).toMatchObject({ status: 409, body: { code: "not_reversible" } });
  expect(await voiding()).toMatchObject({ status: 200, body: { status: "SUCCESS" } });
  const events = await eventually("its event", async () => {
    const found = await itemsOf(`events?subject=${id}&state=reversal_resolved`);
    return found.length > 0 ? found : undefined;
  });
  expect(events).toMatchObject([{ detail: { reason, stands: true, by: "operator" } }]);
  const audited = await itemsOf(`audit?subject=${id}`);
  expect(audited.map(({ action }) => action)).toContain("letReversalStand");
  expect(await service.operator("POST", `/operator/v1/reversals/${randomUUID()}/stands`, { reason })).toMatchObject({
    status: 404,
  });
});

test.each([
  { tid: "T8000014", other: "tok_approve" },
  { tid: "T8000015", other: "tok_decline_51" },
])("a Sale stands beside another currency only if nothing in that counts: $other", async (row) => {
  const { tid, other } = row;
  const { body } = await partner.run(sale({ tid, card: { token: "tok_approve_08" } }));
  const path = `reversals/${body["id"]}`;
  const becomes = (state: string) =>
    eventually(state, async () => ((await get(path))["state"] === state ? true : undefined));
  await becomes("DONE");
  await partner.run(sale({ tid, currency: "USD", card: { token: other } }));
  service.acquirer.behave(next("REVERSAL", { declines: "12" }));
  const reason = "the bank has it";
  await service.operator("POST", `/operator/v1/${path}/retry`, { reason });
  await becomes("PARKED");
  const stands = () => service.operator("POST", `/operator/v1/${path}/stands`, { reason });
  const otherCurrency = { status: 409, body: { code: "batch_currency" } };
  if (other === "tok_decline_51") {
    expect(await stands()).toMatchObject({ status: 200, body: { state: "STANDS" } });
    expect(await partner.run(sale({ tid, currency: "USD" }))).toMatchObject(otherCurrency);
    expect(await partner.run(sale({ tid }))).toMatchObject({ body: { status: "SUCCESS" } });
    return;
  }
  expect(await stands()).toMatchObject(otherCurrency);
  const { body: settled } = await partner.run({ command: "SETTLEMENT", reqId: randomUUID(), tid, mid: body["mid"] });
  expect(settled).toMatchObject({ status: "SUCCESS", saleQuantity: "1" });
  const shown = () => get(`settlements/${String(settled["id"])}`);
  const sent = await shown();
  expect(sent).toMatchObject({ state: "settled", currency: "USD", totals: { saleQuantity: 1, refundTotalMinor: "0" } });
  expect(await stands()).toMatchObject({ status: 200, body: { state: "STANDS" } });
  // What was sent stays, whatever is decided about its batch afterwards.
  expect(await shown()).toEqual(sent);
});

test.each([
  "reversals/%/retry",
  "reversals/%/resolve",
  "reversals/%/stands",
  "settlements/%/abort",
  "settlements/%/resolve",
])("no card number is kept in the reason of %s", async (path) => {
  const reason = "card 4111 1111 1111 1111";
  const refused = await service.operator("POST", `/operator/v1/${path.replace("%", randomUUID())}`, { reason });
  expect(refused).toMatchObject({ status: 400, body: { code: "card_number_in_clear" } });
});

test("a settlement without an answer is listed, and aborted with a reason: its batch is open again", async () => {
  const tid = "T8000003";
  const doubted = await parked(tid);
  const { body: sold } = await partner.run(sale({ tid }));
  const silent = service.acquirer.behave(({ command }) => (command === "SETTLEMENT" ? { answers: "lost" } : undefined));
  const settlement = { command: "SETTLEMENT", reqId: randomUUID(), tid, mid: sold["mid"] };
  const { body } = await partner.run(settlement, { prefer: "respond-async" });
  const id = String(body["id"]);
  expect((await itemsOf(`settlements?partner=${partner.id}`)).map((one) => one["id"])).toEqual([id]);
  const isSent = async () => (await get(`settlements/${id}`))["state"] === "sending" || undefined;
  await eventually("its totals to be sent", isSent);
  const resolve = () =>
    service.operator("POST", `/operator/v1/reversals/${doubted}/resolve`, { reason: "nothing is charged" });
  expect(await resolve()).toMatchObject({ status: 409, body: { code: "settlement_in_progress" } });
  const abort = () => service.operator("POST", `/operator/v1/settlements/${id}/abort`, { reason: "not at the bank" });
  expect(await abort()).toMatchObject({ status: 200, body: { id, state: "ERROR", isoResponseCode: "96" } });
  expect(await resolve()).toMatchObject({ status: 200, body: { state: "DONE" } });
  silent();
  expect(await abort()).toMatchObject({ status: 404 });
  expect(await get(`settlements/${id}`)).toMatchObject({ state: "refused", isoResponseCode: "96", dueAt: null });
  const events = await eventually("its events", async () => {
    const found = await itemsOf(`events?subject=${id}`);
    return found.length === 2 ? found : undefined;
  });
  expect(events.map(({ kind }) => kind).sort()).toEqual(["settlement_aborted", "settlement_refused"]);
  expect(new Set(events.map(({ subjectId }) => subjectId))).toEqual(new Set([id]));
  const { body: more } = await partner.run(sale({ tid }));
  expect(more).toMatchObject({ status: "SUCCESS", batchNo: sold["batchNo"] });
});

test("transactions come in pages, the newest first, without a card in them", async () => {
  const other = await service.register();
  const ids: unknown[] = [];
  for (const amount of ["1", "2", "3"]) ids.unshift((await other.run(sale({ tid: "T8000004", amount }))).body["id"]);
  const first = await get(`transactions?partner=${other.id}&limit=2`);
  const second = await get(`transactions?partner=${other.id}&limit=2&after=${first["next"]}`);
  const all = [...(first["items"] as { id: string }[]), ...(second["items"] as { id: string }[])];
  expect(all.map(({ id }) => id)).toEqual(ids);
  expect(second["next"]).toBeNull();
  // Its ids and the acquirer's references are random.
  const random = /[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}|(?<="refId":")\d{12}(?=")/g;
  expect(JSON.stringify(all).replaceAll(random, "")).not.toMatch(/411111|tok_/);
  await other.run({ command: "SETTLEMENT", reqId: randomUUID(), tid: "T8000004", mid: "M00000000000001" });
  expect(await itemsOf(`batches?partner=${other.id}`)).toMatchObject([{ saleQuantity: 3, saleTotalMinor: "6" }]);
  const settle = { command: "SETTLEMENT", tid: "T8000004", mid: "M00000000000001" };
  for (let nth = 0; nth < 4; nth += 1) await other.run({ ...settle, reqId: randomUUID() });
  const batchNos: unknown[] = [];
  for (let after = ""; after !== "null"; ) {
    const page = await get(`batches?partner=${other.id}&limit=2${after}`);
    batchNos.push(...(page["items"] as { batchNo: string }[]).map(({ batchNo }) => batchNo));
    after = page["next"] === null ? "null" : `&after=${page["next"]}`;
  }
  expect(batchNos).toEqual(["000005", "000004", "000003", "000002", "000001"]);
});

test("a merchant's sales of a period are counted by their results, and a batch lists its own", async () => {
  const shop = await service.register();
  const tid = "T8000012";
  const from = new Date().toISOString();
  const { body: sold } = await shop.run(sale({ tid, amount: "150000" }));
  const { body: voided } = await shop.run(sale({ tid, amount: "1000" }));
  await shop.run({ command: "VOID", reqId: randomUUID(), transactionId: voided["id"] });
  await shop.run(sale({ tid, amount: "7", card: { ...(sale()["card"] as object), token: "tok_decline_51" } }));
  const { body: standing } = await shop.run(sale({ tid, amount: "20" }));
  service.acquirer.behave(next("REVERSAL", { declines: "12" }));
  await shop.run({ command: "REVERSAL", reqId: randomUUID(), transactionId: standing["id"] });
  // A PreAuth is no sale, so its Void takes nothing back.
  const { body: reserved } = await shop.run({ ...sale({ tid, amount: "5" }), command: "PREAUTH" });
  await shop.run({ command: "VOID", reqId: randomUUID(), transactionId: reserved["id"] });
  await (await service.register()).run(sale({ tid: "T8000013" }));
  const to = new Date(Date.now() + 1_000).toISOString();
  const { items } = await get(`merchants?partner=${shop.id}&from=${from}&to=${to}`);
  expect(merchantsSchema.shape.items.parse(items)).toEqual([
    expect.objectContaining({
      ...{ partnerId: shop.id, mid: sold["mid"], currency: "VND", saleQuantity: 3, saleTotalMinor: "151020" },
      ...{ voidQuantity: 1, voidTotalMinor: "1000", refundQuantity: 0, reversedQuantity: 0, declinedQuantity: 1 },
    }),
  ]);
  expect((await get(`merchants?partner=${shop.id}&from=${to}&to=${from}`))["code"]).toBe("invalid_value");
  // What a switch reported may have an id without a time.
  for (const [id, status, isoResponseCode] of [
    [randomUUID(), "SUCCESS", "00"],
    [undefined, "SUCCESS", "00"],
    [undefined, "ERROR", "05"],
  ] as const) {
    const kiosk = { mid: "M9", merchantName: "Kiosk", id, status, isoResponseCode };
    await service.report([reportedSale(shop.id, { ...kiosk, amount: "12.50", currency: "USD" })]);
  }
  const later = new Date(Date.now() + 1_000).toISOString();
  const ofShop = (await get(`merchants?partner=${shop.id}&from=${from}&to=${later}`))["items"] as object[];
  expect(ofShop).toHaveLength(2);
  expect(ofShop.at(-1)).toMatchObject({
    ...{
      mid: "M9",
      merchantName: "Kiosk",
      currency: "USD",
      saleQuantity: 2,
      saleTotalMinor: "2500",
      declinedQuantity: 1,
    },
    ...{ voidTotalMinor: "0", refundTotalMinor: "0", reversedQuantity: 0 },
  });
  expect(await get(`merchants?partner=${shop.id}&from=2020-01-01T00:00:00Z&to=2020-01-02T00:00:00Z`)).toEqual({
    items: [],
  });
  await shop.run({ command: "SETTLEMENT", reqId: randomUUID(), tid, mid: sold["mid"] });
  const [batch] = await itemsOf(`batches?partner=${shop.id}`);
  const ofBatch = await itemsOf(`transactions?partner=${shop.id}&batch=${String(batch?.["id"])}`);
  expect(ofBatch.map(({ id }) => id)).toEqual(expect.arrayContaining([sold["id"], voided["id"]]));
  expect(await itemsOf(`transactions?partner=${shop.id}&batch=${randomUUID()}`)).toEqual([]);
});

test("each kind answers exactly the fields that the API documents", async () => {
  const tid = "T8000009";
  const { body } = await partner.run(sale({ tid }));
  await partner.run({ command: "SETTLEMENT", reqId: randomUUID(), tid, mid: body["mid"] });
  await parked("T8000010");
  for (const kind of ["transactions", "batches", "reversals", "events"] as const) {
    const items = await itemsOf(`${kind}?partner=${partner.id}`);
    expect(items.length, kind).toBeGreaterThan(0);
    for (const item of items) moneyRecords[kind].one.strict().parse(item);
  }
  const silent = service.acquirer.behave(({ command }) => (command === "SETTLEMENT" ? { answers: "lost" } : undefined));
  const { body: other } = await partner.run(sale({ tid: "T8000011" }));
  const settlement = { command: "SETTLEMENT", reqId: randomUUID(), tid: "T8000011", mid: other["mid"] };
  await partner.run(settlement, { prefer: "respond-async" });
  const [running] = await itemsOf(`settlements?partner=${partner.id}`);
  moneyRecords.settlements.one.strict().parse(running);
  silent();
  for (const item of await itemsOf(`transactions/${String(body["id"])}/chain`)) {
    chainSchema.shape.items.element.strict().parse(item);
  }
});

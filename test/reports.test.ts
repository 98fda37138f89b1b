import { describe, expect, test } from "vitest";
import { reportedSale } from "./support/commands.ts";
import { queryHomes } from "./support/database.ts";
import { ipnOf } from "./support/receiver.ts";
import { eventually, serviceOfFile, type TestPartner } from "./support/service.ts";

const service = await serviceOfFile();

interface Result {
  readonly externalId: string;
  readonly result: string;
  readonly transactionId?: string;
  readonly problem?: { readonly status: number; readonly code: string; readonly errors?: { readonly field: string }[] };
}

async function report(...completions: readonly Readonly<Record<string, unknown>>[]): Promise<readonly Result[]> {
  const { body } = await service.operator("POST", "/operator/v1/completions", { completions });
  return body["results"] as Result[];
}

function saleOf(partner: TestPartner, change: Readonly<Record<string, unknown>> = {}) {
  return reportedSale(partner.id, change) as Readonly<Record<string, unknown>> & { readonly externalId: string };
}

/** The operator's events of a kind, about one partner. */
async function eventsOf(partnerId: string, kind: string): Promise<readonly Readonly<Record<string, unknown>>[]> {
  const ofKind = "SELECT detail FROM events WHERE partner_id = $1 AND kind = $2 ORDER BY id";
  const rows = await queryHomes<{ detail: Record<string, unknown> }>(service.database, ofKind, [partnerId, kind]);
  return rows.map(({ detail }) => detail);
}

describe("an externalId that was reported before", () => {
  test("with the same content is a duplicate, however its values are written", async () => {
    const partner = await service.register();
    const sale = saleOf(partner);
    const [first] = await report(sale);
    const [again, otherwise] = await report(sale, { ...sale, currency: "704", amount: "150000.00" });
    expect(again).toEqual({ externalId: sale.externalId, result: "duplicate", transactionId: first?.transactionId });
    expect(otherwise).toEqual(again);
    expect(await eventsOf(partner.id, "report_conflict")).toEqual([]);
  });

  test("with other content is a conflict that names what differs, and an event that holds it", async () => {
    const partner = await service.register();
    const sale = saleOf(partner);
    const voiding = { ...sale, command: "VOID", originalExternalId: sale.externalId };
    const [first, second, third] = await report(sale, { ...sale, amount: "150001", tid: "T1" }, voiding);
    expect(first).toMatchObject({ result: "accepted" });
    expect(second).toMatchObject({
      result: "conflict",
      transactionId: first?.transactionId,
      problem: { status: 409, code: "report_conflict" },
    });
    expect(second?.problem?.errors?.map(({ field }) => field)).toEqual(["completions[1].amount", "completions[1].tid"]);
    expect(third?.problem?.errors?.map(({ field }) => field)).toEqual(["completions[2].command"]);
    expect(await eventsOf(partner.id, "report_conflict")).toMatchObject([
      { externalId: sale.externalId, differs: ["amount", "tid"], item: { amount: "150001", tid: "T1" } },
      { externalId: sale.externalId, differs: ["command"], item: { command: "VOID" } },
    ]);
  });
});

describe("reports that only the command distinguishes", () => {
  test("a Sale and its Void are both notified, in one call and in two", async () => {
    const partner = await service.register({ reports: { identity: "externalId+command" } });
    for (const inOneCall of [true, false]) {
      const sale = saleOf(partner);
      const voiding = { ...sale, command: "VOID", originalExternalId: sale.externalId };
      const results = inOneCall ? await report(sale, voiding) : [...(await report(sale)), ...(await report(voiding))];
      expect(results.map(({ result }) => result)).toEqual(["accepted", "accepted"]);
      expect((await report(voiding, sale)).map(({ result }) => result)).toEqual(["duplicate", "duplicate"]);
      const { body } = await partner.call("GET", `/v1/transactions/${results[1]?.transactionId}`);
      expect(body["chain"]).toMatchObject([{ id: results[0]?.transactionId }, { id: results[1]?.transactionId }]);
    }
    const deliveries = await partner.server.next(4);
    expect(deliveries.map(({ received }) => received?.headers.command).sort()).toEqual([
      "SALE",
      "SALE",
      "VOID",
      "VOID",
    ]);
  });

  test("a PreAuth, its Complete and the Void of that find each other", async () => {
    const partner = await service.register({ reports: { identity: "externalId+command" } });
    const preAuth = saleOf(partner, { command: "PREAUTH" });
    const following = { ...preAuth, originalExternalId: preAuth.externalId };
    const chain = [preAuth, { ...following, command: "PREAUTH_COMPLETE" }, { ...following, command: "VOID" }];
    const results = await report(...chain);
    const { body } = await partner.call("GET", `/v1/transactions/${results[2]?.transactionId}`);
    expect(body).toMatchObject({ transaction_type: "VOID", chain: results.map(({ transactionId: id }) => ({ id })) });
  });

  test("earlier reports stay known after the identity setting changed", async () => {
    const partner = await service.register();
    const sale = saleOf(partner);
    const [first] = await report(sale);
    const path = `/operator/v1/partners/${partner.id}`;
    await service.operator("PATCH", path, { reports: { identity: "externalId+command" } });
    const voiding = { ...sale, command: "VOID", originalExternalId: sale.externalId };
    const [again, voided] = await report(sale, voiding);
    expect(again).toMatchObject({ result: "duplicate", transactionId: first?.transactionId });
    const [other] = await report({ ...sale, amount: "150001" });
    expect(other).toMatchObject({ result: "conflict", transactionId: first?.transactionId });
    expect(voided).toMatchObject({ result: "accepted" });
    const back = await service.operator("PATCH", path, { reports: { identity: "externalId" } });
    expect(back).toMatchObject({ status: 400, body: { errors: [{ field: "reports.identity" }] } });
  });
});

describe("an item that is refused", () => {
  test("is nobody's original: a Void of it, in the same call, undoes no transaction whose id it had", async () => {
    const partner = await service.register();
    const [other] = await report(saleOf(partner));
    const taken = saleOf(partner, { id: other?.transactionId });
    const voiding = saleOf(partner, { command: "VOID", originalExternalId: taken.externalId });
    const results = await report(taken, voiding);
    expect(results.map(({ result }) => result)).toEqual(["refused", "accepted"]);
    const { body } = await partner.call("GET", `/v1/transactions/${other?.transactionId}`);
    expect(body["chain"]).toMatchObject([{ id: other?.transactionId }]);
    expect(body["chain"]).toHaveLength(1);
  });

  test("is kept whole for the operator, once, without a card number in it", async () => {
    const partner = await service.register();
    const [number, hidden] = ["4111 1111 1111 1111", "(holds what looks like card data)"];
    const bad = saleOf(partner, { externalId: number, amount: "1,000", billId: number, surprise: { deep: [1] } });
    for (const time of [1, 2]) expect(await report(bad), `time ${time}`).toMatchObject([{ result: "refused" }]);
    const [event, ...others] = await eventsOf(partner.id, "report_refused");
    expect(others).toEqual([]);
    expect(event).toMatchObject({
      externalId: hidden,
      problems: expect.arrayContaining([
        { field: "completions[0].amount", code: "invalid_amount" },
        { field: "completions[0].surprise", code: "unknown_field" },
      ]),
      item: { ...bad, externalId: hidden, billId: hidden },
    });
  });
});

test("a report is sent as the partner agreed with the switch", async () => {
  const partner = await service.register({ reports: { amounts: "minor", schemes: { NAPAS: "NAPAS" } } });
  const given = { amount: "000000001250", currency: "840", cardScheme: "napas", transDateTime: "20261231235960" };
  await report(saleOf(partner, given));
  const [delivery] = await partner.server.next(1);
  expect(ipnOf(delivery)).toMatchObject({
    amount: "12.50",
    currency: "USD",
    cardScheme: "NAPAS",
    transDateTime: "20261231235959",
  });
});

describe("a Void that is reported before its original", () => {
  const voidOf = (partner: TestPartner, originalExternalId: string, change: Readonly<Record<string, unknown>> = {}) =>
    saleOf(partner, { command: "VOID", originalExternalId, ...change });

  test("waits for it, and is a PreAuth's CANCEL behind it", async () => {
    const partner = await service.register({ reports: { identity: "externalId+command" } });
    const preAuth = saleOf(partner, { command: "PREAUTH" });
    const [voided] = await report(voidOf(partner, preAuth.externalId));
    const path = `/v1/transactions/${voided?.transactionId}`;
    const { body: waiting } = await partner.call("GET", path);
    expect(waiting).toMatchObject({ status: "SUCCESS", notification: { state: "pending" } });
    expect((await report(voidOf(partner, preAuth.externalId, { externalId: voided?.externalId })))[0]).toEqual({
      externalId: voided?.externalId,
      result: "duplicate",
      transactionId: voided?.transactionId,
    });
    const [original] = await report(preAuth);
    const deliveries = await partner.server.next(2);
    expect(deliveries.map((delivery) => ipnOf(delivery)?.["transaction_type"])).toEqual(["SALE", "CANCEL"]);
    expect(deliveries[1]?.headers["paybell-original-transaction"]).toBe(original?.transactionId);
    expect(waiting["notification"]).toMatchObject({ id: deliveries[1]?.headers["webhook-id"] });
    const { body } = await partner.call("GET", path);
    expect(body).toMatchObject({
      transaction_type: "CANCEL",
      notification: { id: deliveries[1]?.headers["webhook-id"] },
    });
    expect(body["chain"]).toMatchObject([{ command: "VOID" }, { command: "PREAUTH" }]);
  });

  test("leaves without it after ten minutes", async () => {
    const partner = await service.register();
    const [voided] = await report(voidOf(partner, "never reported"));
    const earlier = "created_at = now() - interval '10 minutes', notify_at = now()";
    await queryHomes(service.database, `UPDATE transactions SET ${earlier} WHERE id = $1`, [voided?.transactionId]);
    const [delivery] = await partner.server.next(1);
    expect(ipnOf(delivery)).toMatchObject({ transaction_type: "VOID", id: voided?.transactionId });
  });

  test("is sent immediately if the report names what it voids", async () => {
    const partner = await service.register();
    await report(voidOf(partner, "a PreAuth", { originalCommand: "PREAUTH" }));
    // They are of two chains, and nothing else orders them.
    await partner.server.next(1);
    await report(voidOf(partner, "a Sale", { originalCommand: "SALE" }));
    const deliveries = await partner.server.next(2);
    expect(deliveries.map((delivery) => ipnOf(delivery)?.["transaction_type"])).toEqual(["CANCEL", "VOID"]);
    expect(await report(voidOf(partner, "a Logon", { originalCommand: "LOGON" }))).toMatchObject([
      { result: "refused", problem: { code: "invalid_value" } },
    ]);
  });
});

test("metrics count what is refused, whatever is wrong with it, and name no topic where none is consumed", async () => {
  const partner = await service.register();
  const metrics = async () => (await service.operator("GET", "/metrics")).text;
  const countsIn = (text: string) =>
    ["refused", "conflict"].map((result) =>
      Number(new RegExp(`^paybell_reports_total\\{command="SALE",result="${result}"\\} (\\d+)$`, "m").exec(text)?.[1]),
    );
  const [refused = Number.NaN, conflicts = Number.NaN] = countsIn(await metrics());
  const good = saleOf(partner);
  await report(good, saleOf(partner, { amount: 7 }), saleOf(partner, { amount: "-1" }), { ...good, amount: "2" });
  // An answer is kept for a moment.
  const text = await eventually("the counts to be shown", async () => {
    const now = await metrics();
    return countsIn(now)[0] === refused ? undefined : now;
  });
  expect(countsIn(text)).toEqual([refused + 2, conflicts + 1]);
  expect(text).not.toMatch(/^paybell_intake_kafka_/m);
});

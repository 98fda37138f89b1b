import { randomUUID } from "node:crypto";
import { client } from "@paybell/partner/client";
import { expect, test } from "vitest";
import { next } from "../packages/server/src/acquirer/simulator/behaviour.ts";
import { reportedSale, sale } from "./support/commands.ts";
import { steadyDayOf, steadyTimeZone } from "./support/days.ts";
import { eventually, serviceOfFile, type TestPartner } from "./support/service.ts";

const service = await serviceOfFile();

const terminal = { tid: "T0000001", mid: "M00000000000001" };

test("a partner gets its batches, settlements and the statement of a day, each transaction with its IPN", async () => {
  const partner = await service.register({ timeZone: steadyTimeZone });
  const run = async (command: Readonly<Record<string, unknown>>) => {
    const { status, text, body } = await partner.run({ reqId: randomUUID(), ...command });
    if (status !== 200) throw new Error(text);
    return body as { id: string; notification: { id: string } };
  };
  const card = { token: "tok_approve", number: "411111******1111", scheme: "VISA", swipeType: "M" };
  const sell = (amount: string, merchantTransId: string, token = card.token) =>
    run({ command: "SALE", amount, currency: "USD", merchantTransId, ...terminal, card: { ...card, token } });
  const kept = await sell("12.50", "order-1");
  const voided = await sell("7.50", "=2+2");
  await run({ command: "VOID", transactionId: voided.id });
  const declined = await sell("1.00", "order-3", "tok_decline_51");
  const settlement = await run({ command: "SETTLEMENT", merchantTransId: "settle-1", ...terminal });
  const reversed = await sell("3.00", "order-4");
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
  const date = steadyDayOf(completedAt ?? "");
  expect((await api.listBatches({ from: date, to: date })).items).toHaveLength(1);
  const statement = await api.getStatement(date);
  expect(statement).toMatchObject({ date, timeZone: steadyTimeZone, isComplete: false });
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
  expect(rows[0]).toBe(
    "kind,at,id,notificationId,command,status,isoResponseCode,currency,amount,movement," +
      "reqId,merchantTransId,tid,mid,batchNo,traceNo,refId,approveCode,originalId,quantity",
  );
  expect(rows[2]).toContain(",7.50,7.50,");
  expect(rows[2]).toContain(",'=2+2,");
  expect(rows[12]).toBe("total,,,,NET,,,USD,,12.50,,,,,,,,,,");
  const other = await service.register({ timeZone: steadyTimeZone });
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

/** What the statements since then say that was moved, with their lines. */
async function movedSince(partner: TestPartner, began: Date) {
  const api = client({ baseUrl: service.baseUrl, apiKey: partner.secrets.apiKey });
  const dates = new Set([began, new Date()].map((time) => time.toISOString().slice(0, 10)));
  const statements = await Promise.all([...dates].map((date) => api.getStatement(date)));
  const lines = statements.flatMap((statement) => statement.lines);
  const totals = statements.flatMap((statement) => statement.totals);
  expect(lines.reduce((sum, { movement }) => sum + Number(movement), 0)).toBe(
    totals.reduce((sum, { netAmount }) => sum + Number(netAmount), 0),
  );
  return { net: totals.reduce((sum, { netAmount }) => sum + Number(netAmount), 0), lines };
}

/** The same by the operator's totals of its merchants. */
async function soldSince(partner: TestPartner, began: Date): Promise<number> {
  const span = `from=${began.toISOString()}&to=${new Date(Date.now() + 1_000).toISOString()}`;
  const { body } = await service.operator("GET", `/operator/v1/merchants?partner=${partner.id}&${span}`);
  let net = 0;
  for (const sums of body["items"] as Record<string, string>[]) {
    expect(sums["currency"]).toBe("VND");
    net += Number(sums["saleTotalMinor"]) - Number(sums["voidTotalMinor"]) - Number(sums["refundTotalMinor"]);
  }
  return net;
}

/** What has a Reversal line is reversed by its own page too, and its chain has the Reversal. */
async function expectReversalsKnown(
  partner: TestPartner,
  lines: readonly { kind: string; id: string }[],
): Promise<void> {
  const idsOf = (body: Readonly<Record<string, unknown>>, name: string) =>
    (body[name] as { id: string; command: string }[]).map(({ command, id }) => `${command} ${id}`);
  for (const { id } of lines.filter((line) => line.kind === "reversal")) {
    const { body } = await partner.call("GET", `/v1/transactions/${id}`);
    expect(body["reversal"]).toBe("done");
    const chain = idsOf(body, "chain");
    const shown = (await service.operator("GET", `/operator/v1/transactions/${id}/chain`)).body;
    expect(idsOf(shown, "items").sort()).toEqual(chain.toSorted());
    expect(shown["items"]).toContainEqual(expect.objectContaining({ id, reversal: "done" }));
    const [reversed = ""] = chain.filter((one) => one.startsWith("REVERSAL "));
    const { body: itsOwn } = await partner.call("GET", `/v1/transactions/${reversed.slice("REVERSAL ".length)}`);
    expect([itsOwn["reversal"], idsOf(itsOwn, "chain")]).toEqual([null, chain]);
  }
}

interface Reported {
  readonly command: string;
  /** The place of its original in the list. */
  readonly of?: number;
  readonly amount?: string;
  readonly currency?: string;
  readonly status?: "ERROR";
}
const preAuth = { command: "PREAUTH", amount: "100" };
const complete = { command: "PREAUTH_COMPLETE", amount: "80" };
const paid = { command: "SALE", amount: "50" };
const failed = { ...paid, status: "ERROR" } as const;
const voided = { command: "VOID", amount: "50", of: 0 };
const reversal = { command: "REVERSAL", of: 0 };

test.each<readonly [string, number, readonly Reported[]]>([
  ["a Sale", 50, [paid]],
  ["a reversed Sale", 0, [paid, reversal]],
  ["a Sale that is reversed twice", 0, [paid, reversal, reversal]],
  ["a Sale whose Reversal failed", 50, [paid, { ...reversal, status: "ERROR" }]],
  ["a failed Sale that is reversed", 0, [failed, reversal]],
  ["a failed Sale that is voided", 0, [failed, voided]],
  ["a voided Sale", 0, [paid, voided]],
  ["a Sale whose Void names no amount", 0, [paid, { ...voided, amount: "", currency: "" }]],
  ["a Sale whose Void is reversed", 50, [paid, voided, { ...reversal, of: 1 }]],
  ["a Sale whose second Void stands", 0, [paid, voided, { ...reversal, of: 1 }, voided]],
  ["a voided Sale that is reversed", 0, [paid, voided, reversal]],
  ["a reversed Sale that is voided", 0, [paid, reversal, voided]],
  ["a Sale that is voided twice", 0, [paid, voided, voided]],
  ["a PreAuth", 0, [preAuth]],
  ["a reversed PreAuth", 0, [preAuth, reversal]],
  ["a PreAuth whose Void is reversed", 0, [preAuth, { ...voided, amount: "100" }, { ...reversal, of: 1 }]],
  ["a PreAuth-Complete", 80, [preAuth, { ...complete, of: 0 }]],
  ["a reversed PreAuth-Complete", 0, [preAuth, { ...complete, of: 0 }, { ...reversal, of: 1 }]],
])("by its statement a partner has booked what %s, reported by a switch, charges", async (_, charged, reports) => {
  // The switch reports what follows a transaction later, in the same call, or earlier.
  for (const order of ["later", "together", "earlier"] as const) {
    for (const identity of ["externalId", "externalId+command"] as const) {
      const began = new Date();
      const partner = await service.register({ reports: { identity } });
      const name = randomUUID();
      const items = reports.map(({ of, ...fields }, nth) =>
        reportedSale(partner.id, {
          isoResponseCode: fields.status === "ERROR" ? "68" : "00",
          ...fields,
          externalId: `${name}-${nth}`,
          ...(of !== undefined && { originalExternalId: `${name}-${of}` }),
        }),
      );
      // Before its original a Void is of an unknown amount, and so are two contradictory reports.
      const [first = {}, ...rest] = items;
      if (order === "earlier" && (rest.length !== 1 || reports[1]?.command !== "REVERSAL")) continue;
      if (order === "together") await service.report(items);
      else for (const item of order === "later" ? items : [...rest, first]) await service.report([item]);
      const { net, lines } = await movedSince(partner, began);
      expect([order, identity, net]).toEqual([order, identity, charged]);
      expect([order, identity, await soldSince(partner, began)]).toEqual([order, identity, charged]);
      await expectReversalsKnown(partner, lines);
      for (const { kind, id, batchNo } of lines.filter((line) => line.kind === "reversal")) {
        expect(lines).toContainEqual(expect.objectContaining({ kind: "transaction", id, batchNo }));
        expect(kind).toBe("reversal");
      }
    }
  }
});

/** The bank's word on what the cardholders of a terminal paid. */
function chargedAt(tid: string): number {
  const charges = { SALE: 1, PREAUTH_COMPLETE: 1, REFUND: -1 } as const;
  return service.acquirer.bank
    .all()
    .filter((booking) => booking.tid === tid && (booking.state === "stands" || booking.state === "settled"))
    .reduce((sum, { command, amountMinor }) => {
      return sum + (command in charges ? charges[command as keyof typeof charges] : 0) * Number(amountMinor);
    }, 0);
}

interface Sent {
  readonly command: string;
  readonly of?: number | undefined;
  readonly amount?: string | undefined;
  /** The bank acts, and its answer is lost. */
  readonly unanswered?: true;
  /** The bank refuses its Reversal for good: the operator lets it stand. */
  readonly stands?: true;
  /** The bank says that it reversed it, and did not: the operator sends the Reversal again, and lets it stand then. */
  readonly kept?: true;
}
const sold = { command: "SALE", amount: "50" };
const held = { command: "PREAUTH", amount: "100" };
const completed = { command: "PREAUTH_COMPLETE", amount: "80", of: 0 };
const undone = { command: "VOID", of: 0 };
const refunded = { command: "REFUND", amount: "20", of: 0 };
const unanswered = { unanswered: true } as const;
const settles = { command: "SETTLEMENT" };
const stands = { stands: true } as const;
const kept = { kept: true } as const;

function requestOf({ command, of, amount }: Sent, tid: string, ids: readonly string[]) {
  const { mid } = terminal;
  const own =
    of !== undefined ? { transactionId: ids[of] } : command === "SETTLEMENT" ? { tid, mid } : sale({ tid, mid });
  return { ...own, command, ...(amount !== undefined && { amount }), reqId: randomUUID() };
}

/** The bank acts on the next message of this command, and its answer is lost. */
function loseAnswer(command: "SALE"): void {
  const answers = { breaksAndArrivesAfterMs: 0 };
  service.acquirer.behave(next(command, { answers, forgetsReversals: true }));
}

function bankActsOn({ command, unanswered, stands, kept }: Sent): void {
  if (stands || kept) service.acquirer.behave(next("REVERSAL", { declines: kept ? "00" : "12" }));
  if (unanswered || (stands && command !== "REVERSAL")) loseAnswer(command as "SALE");
}

async function operatorDecidesOn({ stands, kept }: Sent, id: string): Promise<void> {
  if (kept) await sendAgain(id);
  if (stands || kept) await letStand(id);
}

async function sendAgain(id: string): Promise<void> {
  service.acquirer.behave(next("REVERSAL", { declines: "12" }));
  const reason = { reason: "the bank has it in its books" };
  const { status, text } = await service.operator("POST", `/operator/v1/reversals/${id}/retry`, reason);
  expect(status, text).toBe(200);
}

async function letStand(id: string): Promise<void> {
  await eventually(`the Reversal of ${id} to be refused`, async () => {
    const { body } = await service.operator("GET", `/operator/v1/reversals/${id}`);
    return body["state"] === "PARKED" || undefined;
  });
  const reason = { reason: "the bank refuses it" };
  const { status, text } = await service.operator("POST", `/operator/v1/reversals/${id}/stands`, reason);
  expect(status, text).toBe(200);
}

test.each<readonly [string, readonly Sent[]]>([
  ["a Sale", [sold]],
  ["an unanswered Sale", [{ ...sold, ...unanswered }]],
  ["a Sale that its partner reverses", [sold, reversal]],
  ["an unanswered Sale that its partner reverses", [{ ...sold, ...unanswered }, reversal]],
  ["a voided Sale", [sold, undone]],
  ["a Sale whose Void is unanswered", [sold, { ...undone, ...unanswered }]],
  ["a refunded Sale", [sold, settles, refunded]],
  ["a Sale whose Refund is unanswered", [sold, settles, { ...refunded, ...unanswered }]],
  ["an unanswered PreAuth", [{ ...held, ...unanswered }]],
  ["a PreAuth that its partner reverses", [held, reversal]],
  ["a PreAuth-Complete", [held, completed]],
  ["an unanswered PreAuth-Complete", [held, { ...completed, ...unanswered }]],
  ["a PreAuth-Complete that its partner reverses", [held, completed, { ...reversal, of: 1 }]],
  ["a PreAuth-Complete whose Void is unanswered", [held, completed, { ...undone, ...unanswered, of: 1 }]],
  ["an unanswered Sale that stands", [{ ...sold, ...stands }]],
  ["an unanswered Sale that stands, and is settled", [{ ...sold, ...stands }, settles]],
  ["an unanswered Sale that stands, and is voided", [{ ...sold, ...stands }, undone]],
  ["an unanswered Sale that stands, and is refunded", [{ ...sold, ...stands }, settles, refunded]],
  ["a Sale whose unanswered Void stands", [sold, { ...undone, ...stands }, settles]],
  ["a Sale whose unanswered Refund stands", [sold, settles, { ...refunded, ...stands }]],
  ["an unanswered PreAuth that stands, and is completed", [{ ...held, ...stands }, completed]],
  ["an unanswered PreAuth-Complete that stands", [held, { ...completed, ...stands }, settles]],
  ["a Sale that stands after its partner's Reversal", [sold, { ...reversal, ...stands }, settles, refunded]],
  ["a Sale that stands after it had been reversed", [sold, { ...reversal, ...kept }, settles, refunded]],
  ["a Sale that stands after it had been reversed, and is voided", [sold, { ...reversal, ...kept }, undone]],
])("by its statement a partner has booked what the bank charges for %s", async (_, commands) => {
  const began = new Date();
  const partner = await service.register({ refunds: "notified" });
  const tid = `T${randomUUID().slice(0, 7)}`;
  const ids: string[] = [];
  for (const one of commands) {
    const { command, of = 0 } = one;
    bankActsOn(one);
    const { status, body: answer, text } = await partner.run(requestOf(one, tid, ids));
    // The partner's Reversal may find that of the service ended.
    expect([200, ...(command === "REVERSAL" ? [202, 409] : [])], text).toContain(status);
    ids.push(String(answer["id"]));
    await operatorDecidesOn(one, ids.at(command === "REVERSAL" ? of : -1) ?? "");
    if (command === "SETTLEMENT") expect(answer).toMatchObject({ status: "SUCCESS" });
  }
  for (const id of ids) {
    await eventually(`the Reversal of ${id} to be answered`, async () => {
      const { body } = await partner.call("GET", `/v1/transactions/${id}`);
      return (body["reversal"] !== "pending" && body["status"] !== "INIT") || undefined;
    });
  }
  const { net, lines } = await movedSince(partner, began);
  expect([net, await soldSince(partner, began)]).toEqual(Array(2).fill(chargedAt(tid)));
  // What its partner was told stays.
  const told = commands.some((one) => one.kept) ? ["SUCCESS", "00"] : ["ERROR", "68"];
  for (const { kind, status, isoResponseCode } of lines)
    if (kind === "stands") expect([status, isoResponseCode]).toEqual(told);
});

import { randomUUID } from "node:crypto";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { CardIpn, ReceivedIpn, SettlementIpn } from "@paybell/partner";
import { client } from "@paybell/partner/client";
import { reconcile } from "@paybell/partner/reconcile";
import { sampleIpn } from "@paybell/partner/testing";
import type { Client } from "pg";
import { expect, test } from "vitest";
import { next } from "../packages/server/src/acquirer/simulator/behaviour.ts";
import { blocksOf } from "../scripts/sources/blocks.ts";
import { reportedSale, sale } from "./support/commands.ts";
import { withAdmin } from "./support/database.ts";
import { eventually, serviceOfFile, type TestPartner } from "./support/service.ts";

interface Guide {
  readonly tables: string;
  readonly books: (
    db: Client,
    paybell: unknown,
  ) => {
    keep(one: Readonly<Record<string, unknown>>, command: string, originalId: string): Promise<void>;
    onIpn(received: ReceivedIpn): Promise<void>;
    ofBatch(settlement: SettlementIpn): Promise<readonly CardIpn[]>;
    onLine(line: object): Promise<void>;
  };
}

const guide = await readFile(join(import.meta.dirname, "../docs/partner/what-to-book.md"), "utf8");
const code = blocksOf(guide).find(({ mark }) => mark === "file book.mjs")?.text ?? "";
const { tables, books } = (await import(`data:text/javascript,${encodeURIComponent(code)}`)) as Guide;
const service = await serviceOfFile();

/** The guide's tables, empty, and its functions, for one partner. */
async function book<Result>(
  partner: TestPartner,
  use: (books: ReturnType<Guide["books"]> & { db: Client; sum: () => Promise<number> }) => Promise<Result>,
): Promise<Result> {
  return withAdmin(service.database.url, async (db) => {
    await db.query(`SET search_path TO pg_temp; ${tables}`);
    const sum = async () => Number((await db.query("SELECT coalesce(sum(amount), 0) AS sum FROM booked")).rows[0].sum);
    const api = client({ baseUrl: service.baseUrl, apiKey: partner.secrets.apiKey });
    return use({ ...books(db, api), db, sum });
  });
}

/** Each kind of command once, which comes to 105. */
async function trade(partner: TestPartner) {
  const sent: { readonly reqId: string; readonly command: string; readonly original: string | null }[] = [];
  const run = async (command: string, fields: Readonly<Record<string, unknown>>) => {
    const reqId = randomUUID();
    const { status, body, text } = await partner.run({ ...fields, command, reqId });
    expect(status, text).toBe(200);
    sent.push({ reqId, command, original: String(fields["transactionId"] ?? "") || null });
    return String(body["id"]);
  };
  const tid = () => `T${randomUUID().slice(0, 7)}`;
  const [mid, till, elsewhere] = ["M00000000000009", tid(), tid()];
  const pay = (command: string, amount: string, token = "tok_approve") =>
    run(command, sale({ tid: till, mid, currency: "USD", amount, card: { token } }));

  await run("VOID", { transactionId: await pay("SALE", "25.00") });
  await run("VOID", { transactionId: await pay("SALE", "5.00", "tok_then_decline_91") });
  await pay("SALE", "70.00", "tok_decline_51");
  await pay("SALE", "60.00", "tok_decline_68");
  const sold = await pay("SALE", "30.00");
  const reversed = await pay("SALE", "12.00");
  const { body: reversal } = await partner.run({ command: "REVERSAL", reqId: randomUUID(), transactionId: reversed });
  expect(reversal).toMatchObject({ status: "SUCCESS" });
  await run("VOID", { transactionId: await pay("PREAUTH", "40.00") });
  const preAuth = await pay("PREAUTH", "100.00");
  await run("PREAUTH_COMPLETE", { transactionId: preAuth, amount: "80.00", tid: elsewhere });
  await run("SETTLEMENT", { tid: till, mid });
  await run("REFUND", { transactionId: sold, amount: "10.00" });
  await partner.call("POST", "/v1/test-notification", { json: {} });
  const delivered = await partner.server.next(sent.length + 1);
  const ipns = delivered.map(({ received }) => received as ReceivedIpn);
  return { sent, ipns, reversal, reversed };
}

/** What the statements of these days say that was moved. */
async function moved(partner: TestPartner, ...at: readonly Date[]): Promise<number> {
  const api = client({ baseUrl: service.baseUrl, apiKey: partner.secrets.apiKey });
  const dates = new Set(at.map((time) => time.toISOString().slice(0, 10)));
  const statements = await Promise.all([...dates].map((date) => api.getStatement(date)));
  return statements.flatMap(({ totals }) => totals).reduce((sum, { netAmount }) => sum + Number(netAmount), 0);
}

test.each([
  ["extended IPNs", "extended", false],
  ["the commands that were sent", "specification", true],
  ["the transactions that it asks for", "specification", false],
] as const)(
  "the guide to booking has the sum of the statements, and rows that reconcile, by %s, in any order",
  async (_, fields, knows) => {
    const began = new Date();
    const partner = await service.register({ fields, refunds: "notified" });
    const { sent, ipns, reversal, reversed } = await trade(partner);
    const ignored = [
      sampleIpn({ command: "SETTLEMENT", declined: "58" }).received,
      sampleIpn({ ipn: { mid: "CERTIFY00000001" } }).received,
    ];
    for (const arriving of [ipns, ipns.toReversed(), [...ipns, ...ipns]]) {
      await book(partner, async ({ keep, onIpn, ofBatch, db, sum }) => {
        for (const { reqId, command, original } of knows ? sent : [])
          await db.query("INSERT INTO sent VALUES ($1, $2, $3)", [reqId, command, original]);
        for (const received of [...ignored, ...arriving]) await onIpn(received);
        const { rows } = await db.query("SELECT ipn FROM settlements WHERE ipn->>'status' = 'SUCCESS'");
        const [{ ipn: settlement }] = rows as [{ ipn: SettlementIpn }];
        const findings = async () => reconcile(settlement, await ofBatch(settlement)).findings.map(({ code }) => code);
        expect(await findings()).toEqual(["notified_not_settled", "total_differs", "total_differs"]);
        await keep(reversal, "REVERSAL", reversed);
        expect([await sum(), await findings()]).toEqual([105, []]);
      });
    }
    expect(await moved(partner, began, new Date())).toBe(105);
  },
);

test.each([
  ["extended", "SALE", -150_000],
  ["specification", "SALE", -150_000],
  ["extended", "PREAUTH", 0],
  ["specification", "PREAUTH", 0],
] as const)(
  "by %s fields, the Void of a %s that a switch has not reported books %d until it does",
  async (fields, originalCommand, booked) => {
    const began = new Date();
    const partner = await service.register({ fields });
    const externalId = randomUUID();
    await service.report([
      reportedSale(partner.id, { command: "VOID", originalExternalId: externalId, originalCommand }),
    ]);
    await book(partner, async ({ onIpn, sum }) => {
      const [voided] = await partner.server.next(1);
      await onIpn(voided?.received as ReceivedIpn);
      expect([await sum(), await moved(partner, began, new Date())]).toEqual([booked, booked]);
      await service.report([reportedSale(partner.id, { externalId, command: originalCommand })]);
      const [, original] = await partner.server.next(2);
      await onIpn(original?.received as ReceivedIpn);
      expect([await sum(), await moved(partner, began, new Date())]).toEqual([0, 0]);
    });
  },
);

test("with the lines of the statement, a partner has booked what its switch reported, and what stands", async () => {
  const began = new Date();
  const partner = await service.register({ fields: "extended" });
  const [kept, sold, voided] = [randomUUID(), randomUUID(), randomUUID()];
  const of = (originalExternalId: string, change = {}) => reportedSale(partner.id, { originalExternalId, ...change });
  await service.report([
    reportedSale(partner.id, { externalId: kept }),
    of(kept, { command: "VOID", externalId: voided }),
    of(voided, { command: "REVERSAL" }),
    reportedSale(partner.id, { externalId: sold }),
    of(sold, { command: "REVERSAL" }),
  ]);
  const api = client({ baseUrl: service.baseUrl, apiKey: partner.secrets.apiKey });
  // Its Reversal is refused.
  service.acquirer.behave(next("REVERSAL", { declines: "12" }));
  const { body } = await partner.run(sale({ amount: "70", card: { token: "tok_approve_08" } }));
  expect(body).toMatchObject({ status: "ERROR" });
  const stands = `/operator/v1/reversals/${String(body["id"])}/stands`;
  await eventually("its Reversal to be refused", async () => {
    const { status } = await service.operator("POST", stands, { reason: "the bank has settled it" });
    return status === 200 || undefined;
  });
  const ipns = (await partner.server.next(4)).map(({ received }) => received as ReceivedIpn);
  const [others, its] = [
    ipns.filter(({ ipn }) => ipn.id !== body["id"]),
    ipns.filter(({ ipn }) => ipn.id === body["id"]),
  ];
  for (const [before, after] of [
    [ipns, []],
    [others, its],
  ] as const) {
    await book(partner, async ({ onIpn, onLine, sum }) => {
      for (const received of before) await onIpn(received);
      expect(await sum()).toBe(150_000);
      for (const date of new Set([began, new Date()].map((time) => time.toISOString().slice(0, 10)))) {
        for (const line of (await api.getStatement(date)).lines) await onLine(line);
      }
      expect([await sum(), await moved(partner, began, new Date())]).toEqual([150_070, 150_070]);
      for (const received of after) await onIpn(received);
      expect(await sum()).toBe(150_070);
    });
  }
});

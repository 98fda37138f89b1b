import fc from "fast-check";
import { expect, test } from "vitest";
import { openTestDatabase } from "../../../../../test/support/connections.ts";
import { idOfText, lowestId, newId, type PartnerId } from "../../ids.ts";
import { type StatementLine, Statements, type StatementTotals } from "../../ledger/statements.ts";
import { dayIn } from "../../time.ts";
import { watchPlans } from "../plans.fixture.ts";
import { insertPartner } from "../rows.fixture.ts";
import { postgresStatements } from "./statements.ts";

const connections = await openTestDatabase();
const carriedOut = watchPlans(connections.pool);
const store = postgresStatements(connections.homes);
const hourMs = 3_600_000;
/** Clocks go back, and forward, within these days. */
const zones = ["UTC", "Asia/Ho_Chi_Minh", "America/New_York", "Pacific/Chatham", "Africa/Cairo"] as const;
const beganMs = Date.parse("2026-10-30T00:00:00Z");
const nowMs = Date.parse("2026-11-10T00:00:00Z");
const statements = new Statements(store, () => nowMs, 400);

const decimals = { VND: 0, USD: 2, KWD: 3 };

interface Made {
  readonly command: string;
  readonly state: "SUCCESS" | "ERROR";
  readonly minor: number;
  readonly currency: keyof typeof decimals;
  readonly atMs: number;
  readonly tookMs: number;
  readonly isTimed: boolean;
  /** When its Reversal was done, after it. */
  readonly reversedAfterMs: number | null;
  /** Once done, it may have been sent again. */
  readonly reversal: "DONE" | "PENDING" | "PARKED";
  readonly original: string | null;
}

const made: fc.Arbitrary<Made> = fc.record({
  command: fc.constantFrom("SALE", "PREAUTH", "PREAUTH_COMPLETE", "REFUND", "VOID", "SETTLEMENT", "LOGON"),
  state: fc.constantFrom("SUCCESS", "SUCCESS", "ERROR"),
  minor: fc.integer({ min: 1, max: 999_999_999_999 }),
  currency: fc.constantFrom("VND", "USD", "KWD"),
  atMs: fc.integer({ min: beganMs, max: nowMs - 48 * hourMs }),
  tookMs: fc.oneof(fc.constant(300), fc.integer({ min: 0, max: 24 * hourMs })),
  isTimed: fc.boolean(),
  reversedAfterMs: fc.option(fc.integer({ min: 0, max: 20 * hourMs })),
  reversal: fc.constantFrom("DONE", "PENDING", "PARKED"),
  original: fc.constantFrom("SALE", "PREAUTH", null),
});

function sumOf(all: readonly Made[]): bigint {
  return all.reduce((sum, { minor }) => sum + BigInt(minor), 0n);
}

function written({ minor, currency }: Made): string {
  const count = decimals[currency];
  const digits = String(minor).padStart(count + 1, "0");
  return count === 0 ? digits : `${digits.slice(0, -count)}.${digits.slice(-count)}`;
}

async function insert(partnerId: PartnerId, one: Made): Promise<string> {
  const { command, state, atMs, tookMs, isTimed, reversedAfterMs, reversal, original } = one;
  const id = isTimed ? timedId(atMs) : idOfText(newId());
  const originalId = command === "VOID" && original !== null ? newId() : null;
  const fields = command === "SETTLEMENT" ? {} : { amount: written(one), currency: one.currency };
  const row = `INSERT INTO transactions (partner_id, id, origin, command, state, req_id, original_id, chain_id, facts,
    notification_id, created_at, completed_at) VALUES ($1, $2::uuid, 'command', $3, $4, $2::text, $5, $2::uuid, $6, $7,
    $8, $9)`;
  const at = new Date(atMs);
  if (originalId !== null)
    await connections.pool.query(row, [partnerId, originalId, original, "SUCCESS", null, "{}", null, at, null]);
  const completedAt = new Date(atMs + tookMs);
  const values = [partnerId, id, command, state, originalId, JSON.stringify({ fields }), newId(), at, completedAt];
  await connections.pool.query(row, values);
  if (reversedAfterMs === null) return id;
  await connections.pool.query(
    `INSERT INTO reversals (partner_id, transaction_id, tid, state, due_at, ended_at) VALUES ($1, $2, 'T1', $5, $3,
      CASE WHEN $4 THEN $3::timestamptz END)`,
    [partnerId, id, new Date(atMs + tookMs + reversedAfterMs), isTimed, isTimed ? reversal : "DONE"],
  );
  return id;
}

/** As of the time of the command; ids of one millisecond differ. */
function timedId(atMs: number): string {
  const time = atMs.toString(16).padStart(12, "0");
  return `${time.slice(0, 8)}-${time.slice(8)}${newId().slice(13)}`;
}

async function readAll(partnerId: PartnerId, timeZone: string) {
  const lines: (StatementLine & { readonly date: string })[] = [];
  const totals: StatementTotals[] = [];
  for (let dayMs = beganMs - 24 * hourMs; dayMs < nowMs; dayMs += 24 * hourMs) {
    const date = new Date(dayMs).toISOString().slice(0, 10);
    const statement = statements.statement({ id: partnerId, settings: { timeZone } }, date);
    for await (const page of statement.pages) lines.push(...page.map((line) => ({ ...line, date })));
    totals.push(...statement.totals());
  }
  return { lines, totals };
}

test("each completed transaction is a line of one day in the partner's zone, and totals equal the ledger", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(made, { maxLength: 40 }), fc.constantFrom(...zones), async (all, timeZone) => {
      const partnerId = await insertPartner(connections.pool);
      const ids = await Promise.all(all.map((one) => insert(partnerId, one)));
      const { lines, totals } = await readAll(partnerId, timeZone);
      const dayAt = (atMs: number) =>
        new Intl.DateTimeFormat("sv-SE", { timeZone, dateStyle: "short" }).format(new Date(atMs));
      const expected = all.flatMap(({ command, state, atMs, tookMs, reversedAfterMs }, nth) => {
        if (command === "LOGON") return [];
        const own = `transaction ${ids[nth]} ${dayAt(atMs + tookMs)}`;
        if (reversedAfterMs === null || state === "ERROR") return [own];
        return [own, `reversal ${ids[nth]} ${dayAt(atMs + tookMs + reversedAfterMs)}`];
      });
      expect(lines.map(({ kind, id, date }) => `${kind} ${id} ${date}`).sort()).toEqual(expected.sort());
      for (const [currency, count] of Object.entries(decimals)) {
        const standing = all.filter((one) => {
          return one.currency === currency && one.state === "SUCCESS" && one.reversedAfterMs === null;
        });
        const of = (...commands: string[]) =>
          standing
            .filter(({ command }) => commands.includes(command))
            .reduce((sum, { minor }) => sum + BigInt(minor), 0n);
        const voids = standing.filter(({ command, original }) => command === "VOID" && original !== "PREAUTH");
        const net = totals
          .filter((one) => one.currency === currency)
          .map(({ netAmount }) => {
            const [whole, part = ""] = netAmount.split(".");
            expect(part).toHaveLength(count);
            return `${whole}${part}`;
          });
        expect(net.reduce((sum, one) => sum + BigInt(one), 0n)).toBe(
          of("SALE", "PREAUTH_COMPLETE") - sumOf(voids) - of("REFUND"),
        );
      }
    }),
    { numRuns: 12 },
  );
});

test("a batch adds its Sales to what the partner gets, and takes its Voids and Refunds off", async () => {
  const minor = { saleTotalMinor: "1000", voidTotalMinor: "200", refundTotalMinor: "50" };
  const batch = { settlementId: "s", currency: "USD", closedAt: new Date(nowMs), ...minor };
  const books = new Statements({ batches: async () => [batch] } as never, () => nowMs, 400);
  const { items } = await books.batches(newId(), { limit: 1 });
  expect(items).toMatchObject([{ saleTotalAmount: "10.00", refundTotalAmount: "0.50", netAmount: "7.50" }]);
});

test("a day begins and ends where the clocks of its zone do", () => {
  const lengthsOf = (timeZone: string, ...dates: string[]) =>
    dates.map((date) => {
      const [fromMs, toMs] = dayIn(timeZone, date);
      return (toMs - fromMs) / hourMs;
    });
  expect(lengthsOf("America/New_York", "2026-11-01", "2026-11-02", "2026-03-08")).toEqual([25, 24, 23]);
  // At midnight clocks go to 01:00.
  expect(lengthsOf("Africa/Cairo", "2026-04-23", "2026-04-24")).toEqual([24, 23]);
  expect(new Date(dayIn("Asia/Ho_Chi_Minh", "2026-11-21")[0]).toISOString()).toBe("2026-11-20T17:00:00.000Z");
});

test("a day is complete a minute after its end: what was completed on it is visible then", () => {
  const owner = { id: newId<"partner">(), settings: { timeZone: "UTC" } };
  const [, endMs] = dayIn("UTC", "2026-11-05");
  const isComplete = (afterMs: number) =>
    new Statements(store, () => endMs + afterMs, 400).statement(owner, "2026-11-05").isComplete;
  expect([59_999, 60_000].map(isComplete)).toEqual([false, true]);
});

test("the first day that the ledger has whole is the last one with a statement: before it an empty one would be wrong", () => {
  const owner = { id: newId<"partner">(), settings: { timeZone: "UTC" } };
  const ofDaysAgo = (days: number) =>
    statements.statement(owner, new Date(nowMs - days * 24 * hourMs).toISOString().slice(0, 10));
  expect(ofDaysAgo(400).isComplete).toBe(true);
  expect(() => ofDaysAgo(401)).toThrow(expect.objectContaining({ code: "not_found" }));
});

test("a statement reads its own day only, in pages that miss nothing", async () => {
  const partnerId = await insertPartner(connections.pool);
  const [fromMs] = dayIn("UTC", "2026-11-05");
  await connections.pool.query(
    `INSERT INTO transactions (partner_id, id, origin, command, state, req_id, chain_id, facts, created_at,
       completed_at)
     SELECT $1, i.id, 'command', 'SALE', 'SUCCESS', i.id::text, i.id, '{"fields":{"amount":"5","currency":"VND"}}',
       i.at, i.at
     FROM (
       SELECT to_timestamp($2 / 1000.0 + nth) AS at,
         (lpad(to_hex($2::bigint + nth * 1000), 12, '0') || '7000' || '8000' || lpad(to_hex(nth), 12, '0'))::uuid AS id
       FROM generate_series(-100000, 100000, 50) AS nth) AS i`,
    [partnerId, fromMs],
  );
  carriedOut.length = 0;
  const { pages, totals, isComplete } = statements.statement(
    { id: partnerId, settings: { timeZone: "UTC" } },
    "2026-11-05",
  );
  let lines = 0;
  for await (const page of pages) lines += page.length;
  expect([lines, isComplete]).toEqual([1_728, true]);
  expect(totals()).toMatchObject([{ saleQuantity: 1_728, netAmount: "8640" }]);
  // An hour for clocks that differ, on both sides, and ten minutes for commands that take long.
  expect(Math.max(...carriedOut.map(({ rowsTouched }) => rowsTouched))).toBeLessThan(2 * 700);
  expect(carriedOut.flatMap(({ readWhole }) => readWhole)).toEqual([]);
});

test("a statement reads the Reversals that a switch reported on its day only", async () => {
  const partnerId = await insertPartner(connections.pool);
  const [fromMs] = dayIn("UTC", "2026-11-05");
  await connections.pool.query(
    `WITH sales AS (
       INSERT INTO transactions (partner_id, id, origin, command, state, external_id, chain_id, facts, created_at,
         completed_at)
       SELECT $1, i.id, 'switch', 'SALE', 'SUCCESS', i.id::text, i.id, '{"fields":{"amount":"5","currency":"VND"}}', i.at,
         i.at
       FROM (SELECT gen_random_uuid() AS id, to_timestamp($2 / 1000.0 + nth) AS at
         FROM generate_series(-100000, 100000, 50) AS nth) AS i
       RETURNING id, created_at)
     INSERT INTO transactions (partner_id, id, origin, command, state, external_id, original_id, chain_id, facts,
       created_at, completed_at)
     SELECT $1, gen_random_uuid(), 'switch', 'REVERSAL', 'SUCCESS', s.id || ' reversed', s.id, s.id, '{"fields":{}}',
       s.created_at, s.created_at FROM sales s`,
    [partnerId, fromMs],
  );
  carriedOut.length = 0;
  const { pages, totals } = statements.statement({ id: partnerId, settings: { timeZone: "UTC" } }, "2026-11-05");
  let lines = 0;
  for await (const page of pages) lines += page.length;
  expect(lines).toBe(2 * 1_728);
  expect(totals()).toMatchObject([{ saleQuantity: 1_728, reversedQuantity: 1_728, netAmount: "0" }]);
  // Beside a page of Reversals: their originals, and what else undid these.
  expect(Math.max(...carriedOut.map(({ rowsTouched }) => rowsTouched))).toBeLessThan(4 * 700);
  expect(carriedOut.flatMap(({ readWhole }) => readWhole)).toEqual([]);
});

test.each([
  ["with an id of a switch", "0", "4"],
  ["with a UUIDv7 of a switch, reported a day later", "0", "7", -86_400],
  ["with a UUIDv7 of a switch whose clock is a day ahead", "0", "7", 86_400],
  ["that completed late", "11 minutes", "4"],
])("a statement has each transaction %s once, and each Reversal, over pages", async (_, took, version, aheadS = 0) => {
  const partnerId = await insertPartner(connections.pool);
  const [fromMs] = dayIn("UTC", "2026-11-05");
  await connections.pool.query(
    `WITH made AS (
       INSERT INTO transactions (partner_id, id, origin, command, state, chain_id, facts, created_at, completed_at)
       SELECT $1, i.id, 'switch', 'SALE', 'SUCCESS', i.id, '{"fields":{"amount":"5","currency":"VND"}}',
         i.at - $3::interval, i.at
       FROM (
         SELECT (CASE WHEN $4 = '7' THEN lpad(to_hex($2::bigint + nth / 2 * 1000 + $5::bigint * 1000), 12, '0') ||
             overlay(right(gen_random_uuid()::text, 22) placing '7' from 1) ELSE gen_random_uuid()::text END)::uuid AS id,
           to_timestamp($2 / 1000.0) + nth / 2 * interval '1 s' AS at
         FROM generate_series(1, 1200) AS nth) AS i
       RETURNING id, completed_at)
     INSERT INTO reversals (partner_id, transaction_id, tid, state, ended_at)
     SELECT $1, id, 'T1', 'DONE', completed_at FROM made`,
    [partnerId, fromMs, took, version, aheadS],
  );
  const lines: string[] = [];
  const { pages } = statements.statement({ id: partnerId, settings: { timeZone: "UTC" } }, "2026-11-05");
  for await (const page of pages) lines.push(...page.map(({ kind, id }) => `${kind} ${id}`));
  expect([lines.length, new Set(lines).size]).toEqual([2_400, 2_400]);
});

test("pages of batches go by their Settlements, the latest first, whatever the order of the batches' own ids", async () => {
  const partnerId = await insertPartner(connections.pool);
  const settlementIds = Array.from({ length: 5 }, () => newId());
  for (const [nth, settlementId] of settlementIds.entries()) {
    await connections.pool.query(
      `INSERT INTO batches (partner_id, id, tid, mid, batch_no, settlement_id, sale_quantity, sale_total_minor,
         void_quantity, void_total_minor, refund_quantity, refund_total_minor)
       VALUES ($1, $2, $3, 'M1', '000001', $4, 0, 0, 0, 0, 0, 0)`,
      // A batch that was opened early may be settled late.
      [partnerId, lowestId(nowMs - ((nth * 2) % 5) * hourMs), nth === 2 ? "T2" : "T1", settlementId],
    );
  }
  const read = async (search: { readonly tid?: string }) => {
    const seen: string[] = [];
    for (let after: string | undefined; ; ) {
      const { items, next } = await statements.batches(partnerId, { ...search, after, limit: 2 });
      seen.push(...items.map(({ settlementId }) => settlementId));
      if (next === null) return seen;
      after = next;
    }
  };
  const latestFirst = settlementIds.toReversed();
  expect(await read({})).toEqual(latestFirst);
  expect(await read({ tid: "T1" })).toEqual(latestFirst.filter((id) => id !== settlementIds[2]));
});

test("what was settled, and each line of a statement, has every value in its place", async () => {
  const partnerId = await insertPartner(connections.pool);
  const [settlementId, notificationId, originalId, sold] = [newId(), newId(), newId(), newId()];
  const [fromMs] = dayIn("UTC", "2026-11-05");
  const at = new Date(fromMs + hourMs);
  await connections.pool.query(
    `INSERT INTO batches (partner_id, id, tid, mid, batch_no, currency, settlement_id, sale_quantity, sale_total_minor,
       void_quantity, void_total_minor, refund_quantity, refund_total_minor, closed_at)
     VALUES ($1, $2, 'T1', 'M1', '000007', 'USD', $3, 5, 1000, 2, 200, 1, 50, $4)`,
    [partnerId, newId(), settlementId, at],
  );
  const insertOne = (id: string, command: string, state: string, original: string | null, facts: object) =>
    connections.pool.query(
      `INSERT INTO transactions (partner_id, id, origin, command, state, req_id, original_id, chain_id, facts,
         notification_id, tid, created_at, completed_at)
       VALUES ($1, $2::uuid, 'command', $3, $4, $2::text, $5, $2::uuid, $6, $7, 'T1', $8, $9)`,
      [partnerId, id, command, state, original, JSON.stringify(facts), notificationId, new Date(fromMs), at],
    );
  const told = { reqId: "R", merchantTransId: "m", tid: "T1", mid: "M1", batchNo: "000007", refId: "f", traceNo: "9" };
  const sums = { saleQuantity: "5", saleTotalAmount: "10.00", voidQuantity: "2", voidTotalAmount: "2.00" };
  const { traceNo: _, ...settled } = { ...told, isoResponseCode: "00", settlementDate: "1106" };
  const list = [{ reqId: "R", refNo: "f" }];
  await insertOne(settlementId, "SETTLEMENT", "SUCCESS", null, {
    fields: { ...settled, ...sums },
    settlementList: list,
    currency: "USD",
  });
  const card = { ...told, amount: "2.50", currency: "USD", isoResponseCode: "00", approveCode: "a" };
  await insertOne(sold, "SALE", "SUCCESS", null, { fields: { ...card, reqId: "" } });
  await insertOne(timedId(fromMs + 1), "SALE", "ERROR", null, { fields: { ...card, isoResponseCode: "05" } });
  await insertOne(timedId(fromMs + 2), "VOID", "SUCCESS", originalId, { fields: card });

  const { id: __, ...batch } = (await statements.batches(partnerId, { limit: 1 })).items[0] ?? { id: "" };
  const counted = { saleQuantity: 5, saleTotalAmount: "10.00", voidQuantity: 2, voidTotalAmount: "2.00" };
  expect(batch).toEqual({
    ...{ tid: "T1", mid: "M1", batchNo: "000007", currency: "USD", settlementId, notificationId, ...counted },
    ...{ refundQuantity: 1, refundTotalAmount: "0.50", netAmount: "7.50", closedAt: at.toISOString() },
  });
  expect((await statements.settlements(partnerId, { limit: 1 })).items).toEqual([
    {
      ...{ id: settlementId, status: "SUCCESS", ...settled, currency: "USD", ...sums, listed: 1, notificationId },
      ...{ createdAt: new Date(fromMs).toISOString(), completedAt: at.toISOString() },
    },
  ]);
  const lines: StatementLine[] = [];
  const { pages } = statements.statement({ id: partnerId, settings: { timeZone: "UTC" } }, "2026-11-05");
  for await (const page of pages) lines.push(...page);
  const { refId, approveCode, ...shown } = card;
  const common = { kind: "transaction", at: at.toISOString(), notificationId, ...shown };
  expect(lines.filter(({ command }) => command !== "SETTLEMENT")).toEqual([
    {
      ...common,
      id: expect.any(String),
      command: "SALE",
      status: "ERROR",
      isoResponseCode: "05",
      movement: "0.00",
      refId: "",
      approveCode: "",
      originalId: "",
    },
    {
      ...common,
      id: expect.any(String),
      command: "VOID",
      status: "SUCCESS",
      movement: "-2.50",
      refId: "",
      approveCode,
      originalId,
    },
    {
      ...common,
      id: sold,
      command: "SALE",
      status: "SUCCESS",
      reqId: sold,
      movement: "2.50",
      refId,
      approveCode,
      originalId: "",
    },
  ]);
});

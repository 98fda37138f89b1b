import type { Pool } from "pg";
import { expect, onTestFinished, test, vi } from "vitest";
import { openTestDatabase } from "../../../../../test/support/connections.ts";
import { newId } from "../../ids.ts";
import type { Completion, Init } from "../../ledger/store.ts";
import { queueOf } from "../../notification.ts";
import { Homes } from "../database/homes.ts";
import {
  createHistory,
  insertLease,
  insertPartner,
  sampleFacts,
  sampleInit,
  sampleNotification,
  sampleReport,
} from "../rows.fixture.ts";
import { PostgresCompletions } from "./completions.ts";
import { PostgresTransactions } from "./transactions.ts";

const connections = await openTestDatabase();
await createHistory(connections.pool);
const completions = new PostgresCompletions(connections.homes);
const transactions = new PostgresTransactions(connections);
const partnerId = await insertPartner(connections.pool);
const leaseId = await insertLease(connections.pool);

async function count(table: string, transactionIds: readonly string[]): Promise<number> {
  const { rows } = await connections.pool.query<{ count: number }>(
    table === "pending"
      ? "SELECT count(*) FROM pending p JOIN notifications n USING (partner_id, id) WHERE n.transaction_id = ANY ($1)"
      : `SELECT count(*) FROM ${table} WHERE ${table === "notifications" ? "transaction_id" : "id"} = ANY ($1)`,
    [transactionIds],
  );
  return rows[0]?.count ?? -1;
}

const idsOf = (reports: readonly { readonly id: string }[]) => reports.map(({ id }) => id);

async function begun(change: Partial<Init> = {}) {
  const init = sampleInit(partnerId, leaseId, { tid: `T${newId().slice(-7)}`, ...change });
  const answer = await transactions.begin(init);
  if (answer.outcome !== "begun") throw new Error(answer.outcome);
  return init;
}

/** The success of a command, with its IPN. */
function resultOf(init: Init, change: Partial<Completion> = {}): Completion {
  const notification = sampleNotification(partnerId, init.id);
  const nothingElse = { original: null, reversal: null, batch: null };
  const { facts } = notification;
  return { partnerId, id: init.id, leaseId, state: "SUCCESS", facts, notification, ...nothingElse, ...change };
}

test("a completion makes the result, the IPN and the pending delivery durable together", async () => {
  const originalId = newId<"transaction">();
  const init = await begun({ command: "REFUND", originalId });
  const notification = sampleNotification(partnerId, init.id);
  const completed = await completions.complete(resultOf(init, { notification }));
  const atMs = completed.outcome === "completed" ? completed.atMs : 0;
  expect(await transactions.find(partnerId, init.id)).toMatchObject({
    state: "SUCCESS",
    notification: { id: notification.id, state: "pending" },
    facts: notification.facts,
  });
  const history = "SELECT command, original_id FROM notifications WHERE id = $1";
  const { rows: kept } = await connections.pool.query(history, [notification.id]);
  expect(kept).toEqual([{ command: "REFUND", original_id: originalId }]);
  const { rows } = await connections.pool.query("SELECT * FROM pending WHERE id = $1", [notification.id]);
  expect(rows).toEqual([
    {
      shard: Number.parseInt(partnerId.slice(-2), 16),
      partner_id: partnerId,
      id: notification.id,
      queue: "",
      due_at: new Date(atMs),
      round: 0,
      attempts_made: 0,
      schedule_start: new Date(atMs),
      chain_id: notification.chainId,
      follows: false,
      batch_id: expect.any(String),
      settles_batch: null,
      bytes: notification.content.length,
      to_registered: false,
      is_asked: false,
      requests: 0,
      asked: 0,
    },
  ]);
});

test("a completion under another lease is late and writes nothing", async () => {
  const init = await begun();
  const late = await completions.complete(resultOf(init, { leaseId: newId<"lease">() }));
  expect(late).toEqual({ outcome: "late" });
  expect(await count("notifications", [init.id])).toBe(0);
  expect(await transactions.find(partnerId, init.id)).toMatchObject({ state: "INIT", notification: null });
});

test("a completion repeated after an unknown COMMIT is completed, not late, and notifies once", async () => {
  const init = await begun();
  const completion = resultOf(init);
  const first = await completions.complete(completion);
  expect(await completions.complete(completion)).toEqual(first);
  expect(await count("pending", [init.id])).toBe(1);
  const another = { ...completion, notification: sampleNotification(partnerId, init.id) };
  expect(await completions.complete(another)).toEqual({ outcome: "late" });
});

test("a result is written however long the database was away: the acquirer has answered", async () => {
  const init = await begun();
  const [home] = connections.homes.all;
  if (home === undefined) throw new Error("There is one.");
  let [tries, nowMs] = [0, performance.now()];
  const clock = vi.spyOn(performance, "now").mockImplementation(() => nowMs);
  onTestFinished(() => clock.mockRestore());
  const query = async (statement: object) => {
    tries += 1;
    nowMs += 3_600_000;
    if (tries < 3) throw Object.assign(new Error("connect ECONNREFUSED"), { code: "ECONNREFUSED" });
    return home.engine.query(statement as never);
  };
  const homes = new Homes([{ ...home, engine: { query } as unknown as Pool }]);
  const result = resultOf(init, { notification: null });
  expect(await new PostgresCompletions(homes).complete(result)).toMatchObject({ outcome: "completed" });
  expect(tries).toBe(3);
});

test("a result without an IPN is late after another one, and is known again after its own", async () => {
  const init = await begun();
  const result = (isoResponseCode: string) =>
    resultOf(init, {
      state: "ERROR",
      facts: sampleFacts({ status: "ERROR", isoResponseCode }),
      notification: null,
    });
  const first = await completions.complete(result("96"));
  expect(await completions.complete(result("10"))).toEqual({ outcome: "late" });
  expect(await completions.complete(result("96"))).toEqual(first);
});

test("an IPN waits in the queue of its own callback URL, and counts by its bytes", async () => {
  const sample = sampleReport(partnerId);
  const content = JSON.stringify({ ...sample.facts, cardHolder: "NGUYỄN" });
  const callBackUrl = "https://Shop.example:443/ipn?x=1";
  const queue = queueOf({ callBackUrl, command: "SALE" }, undefined);
  const notification = sample.notification && { ...sample.notification, content, callBackUrl, queue };
  await completions.report({ ...sample, notification });
  const { rows } = await connections.pool.query("SELECT queue, bytes FROM pending WHERE id = $1", [notification?.id]);
  expect(rows).toEqual([{ queue: "https://shop.example", bytes: content.length + 2 }]);
});

test("a batch is bounded by bytes, not by characters", async () => {
  const flushed: number[] = [];
  const observed = new PostgresCompletions(connections.homes, { onFlush: (rows) => void flushed.push(rows) });
  // Three bytes per character: two of these are 800,000 characters, and more than the megabyte of one batch.
  const content = JSON.stringify({ cardHolder: "Ễ".repeat(400_000) });
  const reports = [sampleReport(partnerId), sampleReport(partnerId)].map((report) => ({
    ...report,
    notification: report.notification && { ...report.notification, content },
  }));
  await Promise.all(reports.map((report) => observed.report(report)));
  expect(flushed).toEqual([1, 1]);
});

test("a report is accepted once; the same externalId again is a duplicate with the first id", async () => {
  const report = sampleReport(partnerId);
  expect(await completions.report(report)).toMatchObject({ outcome: "accepted", id: report.id });
  const again = sampleReport(partnerId, { externalId: report.externalId });
  expect(await completions.report(again)).toMatchObject({ outcome: "known", id: report.id });
  expect(await count("notifications", [report.id, again.id])).toBe(1);
});

test("a repeated externalId gets what is known of its report", async () => {
  const report = sampleReport(partnerId, { originalExternalId: "X-0" });
  await completions.report(report);
  const again = await completions.report(sampleReport(partnerId, { externalId: report.externalId }));
  const { command, originalExternalId, callBackUrl, facts } = report;
  expect(again).toEqual({
    outcome: "known",
    id: report.id,
    before: { command, originalExternalId, callBackUrl, facts },
  });
});

test("one externalId reported many times at once is accepted exactly once", async () => {
  const reports = Array.from({ length: 40 }, () => sampleReport(partnerId, { externalId: "X-race" }));
  const answers = await Promise.all(reports.map((report) => completions.report(report)));
  expect(answers.filter((answer) => answer.outcome === "accepted")).toHaveLength(1);
  expect(answers.filter((answer) => answer.outcome === "known")).toHaveLength(39);
  expect(await count("pending", idsOf(reports))).toBe(1);
});

test("a report that brings its own id is a duplicate all the same when it comes again, and only of its partner", async () => {
  const report = sampleReport(partnerId);
  const other = sampleReport(await insertPartner(connections.pool), { externalId: report.externalId });
  for (const { id, ...one } of [report, other]) {
    expect(await completions.report({ id, ...one })).toMatchObject({ outcome: "accepted", id });
  }
  for (const { id, externalId, ...one } of [report, other]) {
    const again = sampleReport(one.partnerId, { id, externalId });
    expect(await completions.report(again)).toMatchObject({ outcome: "known", id });
    expect(await count("notifications", [id])).toBe(1);
  }
});

test("an id that another transaction has is refused without a trace", async () => {
  const first = sampleReport(partnerId);
  await completions.report(first);
  const second = sampleReport(partnerId, { id: first.id, externalId: "X-other" });
  expect(await completions.report(second)).toEqual({ outcome: "id_taken" });
});

test("two reports of one call that bring the same id are one transaction, and one IPN", async () => {
  const first = sampleReport(partnerId);
  const second = sampleReport(partnerId, { id: first.id, externalId: "X-second" });
  const answers = await Promise.all([completions.report(first), completions.report(second)]);
  expect(answers.map(({ outcome }) => outcome).sort()).toEqual(["accepted", "id_taken"]);
  expect(await count("pending", [first.id])).toBe(1);
});

test("a poisoned row of each kind fails alone in a full batch", async () => {
  const good = Array.from({ length: 496 }, () => sampleReport(partnerId));
  const nul = sampleReport(partnerId, { reqId: "\u0000" });
  const noSuchState = sampleReport(partnerId, { state: "INVALID" as "ERROR" });
  const brokenJson = sampleReport(partnerId);
  const broken = {
    ...brokenJson,
    notification: brokenJson.notification && { ...brokenJson.notification, content: "{" },
  };
  // No day of history accepts an id of the year 1970.
  const old = sampleReport(partnerId);
  const lost = { ...old, notification: old.notification && { ...old.notification, id: newId<"notification">(1) } };
  // Ids of one process increase, so this one is a literal.
  const homeless = {
    ...lost,
    notification: lost.notification && {
      ...lost.notification,
      id: "00000000-0001-7000-8000-000000000000" as typeof lost.notification.id,
    },
  };
  const poisoned = [nul, noSuchState, broken, homeless];
  const answers = await Promise.allSettled(
    [...good.slice(0, 250), ...poisoned, ...good.slice(250)].map((report) => completions.report(report)),
  );
  expect(answers.filter((answer) => answer.status === "rejected")).toHaveLength(4);
  expect(await count("pending", idsOf(good))).toBe(good.length);
  expect(await count("transactions", idsOf(poisoned))).toBe(0);
});

test("a system command is recorded without a notification", async () => {
  const report = sampleReport(partnerId, {
    command: "LOGON",
    notification: null,
    facts: { kind: "system", fields: {} },
  });
  expect(await completions.report(report)).toMatchObject({ outcome: "accepted" });
  expect(await transactions.find(partnerId, report.id)).toMatchObject({ command: "LOGON", notification: null });
});

test("a system command that brings its own id is known when it comes again, also with other content", async () => {
  const system = { command: "REVERSAL", notification: null } as const;
  const report = sampleReport(partnerId, { ...system, facts: { kind: "system", fields: { amount: "1" } } });
  await completions.report(report);
  const other = { ...report, facts: { kind: "system", fields: { amount: "2" } } } as const;
  expect(await completions.report(other)).toMatchObject({ outcome: "known", before: { facts: report.facts } });
});

test("a report that waited is in the batch of its original from then on", async () => {
  const report = sampleReport(partnerId, { command: "VOID", originalExternalId: "X-1", waitsForOriginal: true });
  await completions.report(report);
  const waits =
    "SELECT (extract(epoch FROM notify_at - created_at))::float8 AS seconds FROM transactions WHERE id = $1";
  expect((await connections.pool.query(waits, [report.id])).rows).toEqual([{ seconds: 1 }]);
  const { id, facts, chainId, notification } = report;
  if (facts.kind === "system" || notification === null) throw new Error("It has an IPN.");
  const batchId = newId();
  const released = { partnerId, id, originalId: null, chainId, batchId, facts, notification };
  const atMs = await completions.release(released);
  expect(await completions.release(released)).toBeUndefined();
  const { rows } = await connections.pool.query("SELECT reported_batch FROM transactions WHERE id = $1", [id]);
  expect(rows).toEqual([{ reported_batch: batchId }]);
  const pending = await connections.pool.query("SELECT due_at FROM pending WHERE id = $1", [notification.id]);
  // A queue whose cursor is behind its row would not read it.
  expect(pending.rows.map((row) => row.due_at.getTime())).toEqual([atMs]);
});

test("text that only JSON must escape comes back as it was", async () => {
  const facts = sampleFacts({ extraData: '{"a":"\\"\\\\","b":[1,2]}', cardHolder: 'NGUYỄN VĂN Á, {} \\ "x" 😀' });
  const notification = { ...sampleNotification(partnerId, newId()), facts, content: JSON.stringify(facts) };
  const report = sampleReport(partnerId, { facts, notification });
  await completions.report({ ...report, notification: { ...notification, transactionId: report.id } });
  expect((await transactions.find(partnerId, report.id))?.facts).toEqual(facts);
});

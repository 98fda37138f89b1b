import { afterAll, beforeAll, expect, test } from "vitest";
import { createDatabase, type TestDatabase } from "../../../../test/support/database.ts";
import { newId, type PartnerId } from "../ids.ts";
import type { Instance } from "../instance.ts";
import { PostgresCompletions } from "./completions.ts";
import { type Database, openDatabase } from "./database.ts";
import {
  createHistory,
  insertInstance,
  insertPartner,
  sampleFacts,
  sampleInit,
  sampleNotification,
  sampleReport,
} from "./rows.fixture.ts";
import { PostgresTransactions } from "./transactions.ts";

let database: TestDatabase;
let connections: Database;
let completions: PostgresCompletions;
let transactions: PostgresTransactions;
let partnerId: PartnerId;
let instance: Instance;

beforeAll(async () => {
  database = await createDatabase();
  connections = openDatabase(database.url, { connectionsMax: 12, onIdleError: () => {} });
  await createHistory(connections.pool);
  completions = new PostgresCompletions(connections.engine, { onDoubtfulReport: () => {} });
  transactions = new PostgresTransactions(connections);
  partnerId = await insertPartner(connections.pool);
  instance = await insertInstance(connections.pool);
});

afterAll(async () => {
  await connections.close();
  await database.drop();
});

const nothingElse = { original: null, reversal: null, batch: null };

async function count(table: string, transactionIds: readonly string[]): Promise<number> {
  const { rows } = await connections.pool.query<{ count: number }>(
    table === "pending"
      ? "SELECT count(*) FROM pending p JOIN notifications n USING (partner_id, id) WHERE n.transaction_id = ANY ($1)"
      : `SELECT count(*) FROM ${table} WHERE ${table === "notifications" ? "transaction_id" : "id"} = ANY ($1)`,
    [transactionIds],
  );
  return rows[0]?.count ?? -1;
}

async function begun() {
  const init = sampleInit(partnerId, instance, { tid: `T${newId().slice(-7)}` });
  const answer = await transactions.begin(init);
  if (answer.outcome !== "begun") throw new Error(answer.outcome);
  return init;
}

test("a completion makes the result, the IPN and the pending delivery durable together", async () => {
  const init = await begun();
  const notification = sampleNotification(partnerId, init.id, instance);
  const completed = await completions.complete({
    partnerId,
    id: init.id,
    instance,
    state: "SUCCESS",
    facts: notification.facts,
    notification,
    ...nothingElse,
  });
  expect(completed.outcome).toBe("completed");
  expect(await transactions.find(partnerId, init.id)).toMatchObject({
    state: "SUCCESS",
    notification: { id: notification.id, state: "pending" },
    facts: notification.facts,
  });
  const { rows } = await connections.pool.query("SELECT * FROM pending WHERE id = $1", [notification.id]);
  expect(rows).toMatchObject([{ instance_id: instance.id, epoch: 1, claim_no: 1, attempts_made: 0 }]);
});

test("a completion under a lost epoch is late and writes nothing", async () => {
  const init = await begun();
  const notification = sampleNotification(partnerId, init.id, null);
  const late = await completions.complete({
    partnerId,
    id: init.id,
    instance: { ...instance, epoch: 7 },
    state: "SUCCESS",
    facts: notification.facts,
    notification,
    ...nothingElse,
  });
  expect(late).toEqual({ outcome: "late" });
  expect(await count("notifications", [init.id])).toBe(0);
  expect(await transactions.find(partnerId, init.id)).toMatchObject({ state: "INIT", notification: null });
});

test("a completion repeated after an unknown COMMIT is completed, not late, and notifies once", async () => {
  const init = await begun();
  const notification = sampleNotification(partnerId, init.id, null);
  const completion = {
    partnerId,
    id: init.id,
    instance,
    state: "SUCCESS",
    facts: notification.facts,
    notification,
    ...nothingElse,
  } as const;
  const first = await completions.complete(completion);
  expect(await completions.complete(completion)).toEqual(first);
  expect(await count("pending", [init.id])).toBe(1);
});

test("a report is accepted once; the same externalId again is a duplicate with the first id", async () => {
  const report = sampleReport(partnerId, null);
  expect(await completions.report(report)).toMatchObject({ outcome: "accepted", id: report.id });
  const again = sampleReport(partnerId, null, { externalId: report.externalId });
  expect(await completions.report(again)).toMatchObject({ outcome: "known", id: report.id });
  expect(await count("notifications", [report.id, again.id])).toBe(1);
});

test("what is known of a report is told when its externalId comes again", async () => {
  const report = sampleReport(partnerId, null, { originalExternalId: "X-0" });
  await completions.report(report);
  const again = await completions.report(sampleReport(partnerId, null, { externalId: report.externalId }));
  const { command, originalExternalId, callBackUrl, facts } = report;
  expect(again).toEqual({
    outcome: "known",
    id: report.id,
    before: { command, originalExternalId, callBackUrl, facts },
  });
});

test("one externalId reported many times at once is accepted exactly once", async () => {
  const reports = Array.from({ length: 40 }, () => sampleReport(partnerId, null, { externalId: "X-race" }));
  const answers = await Promise.all(reports.map((report) => completions.report(report)));
  expect(answers.filter((answer) => answer.outcome === "accepted")).toHaveLength(1);
  expect(answers.filter((answer) => answer.outcome === "known")).toHaveLength(39);
  expect(
    await count(
      "pending",
      reports.map((report) => report.id),
    ),
  ).toBe(1);
});

test("a report that brings its own id is a duplicate all the same when it comes again", async () => {
  const report = sampleReport(partnerId, null);
  const again = sampleReport(partnerId, null, { id: report.id, externalId: report.externalId });
  expect(await completions.report(report)).toMatchObject({ outcome: "accepted", id: report.id });
  expect(await completions.report(again)).toMatchObject({ outcome: "known", id: report.id });
  expect(await count("notifications", [report.id])).toBe(1);
});

test("an id that another transaction has is refused without a trace", async () => {
  const first = sampleReport(partnerId, null);
  await completions.report(first);
  const second = sampleReport(partnerId, null, { id: first.id, externalId: "X-other" });
  expect(await completions.report(second)).toEqual({ outcome: "id_taken" });
});

test("two reports of one call that bring the same id are one transaction, and one IPN", async () => {
  const first = sampleReport(partnerId, null);
  const second = sampleReport(partnerId, null, { id: first.id, externalId: "X-second" });
  const answers = await Promise.all([completions.report(first), completions.report(second)]);
  expect(answers.map(({ outcome }) => outcome).sort()).toEqual(["accepted", "id_taken"]);
  expect(await count("pending", [first.id])).toBe(1);
});

test("a poisoned row of each kind fails alone in a full batch", async () => {
  const good = Array.from({ length: 496 }, () => sampleReport(partnerId, null));
  const nul = sampleReport(partnerId, null, { reqId: "\u0000" });
  const noSuchState = sampleReport(partnerId, null, { state: "INVALID" as "ERROR" });
  const brokenJson = sampleReport(partnerId, null);
  const broken = {
    ...brokenJson,
    notification: brokenJson.notification && { ...brokenJson.notification, content: "{" },
  };
  // No day of history takes an id of the year 1970.
  const old = sampleReport(partnerId, null);
  const lost = { ...old, notification: old.notification && { ...old.notification, id: newId<"notification">(1) } };
  // Ids of one process rise, so the id is written out.
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
  expect(
    await count(
      "pending",
      good.map((report) => report.id),
    ),
  ).toBe(good.length);
  expect(
    await count(
      "transactions",
      poisoned.map((report) => report.id),
    ),
  ).toBe(0);
});

test("a system command is recorded without a notification", async () => {
  const report = sampleReport(partnerId, null, {
    command: "LOGON",
    notification: null,
    facts: { kind: "system", fields: {} },
  });
  expect(await completions.report(report)).toMatchObject({ outcome: "accepted" });
  expect(await transactions.find(partnerId, report.id)).toMatchObject({ command: "LOGON", notification: null });
});

test("text that only JSON must escape comes back as it was", async () => {
  const facts = sampleFacts({ extraData: '{"a":"\\"\\\\","b":[1,2]}', cardHolder: 'NGUYỄN VĂN Á, {} \\ "x" 😀' });
  const notification = { ...sampleNotification(partnerId, newId(), null), facts, content: JSON.stringify(facts) };
  const report = sampleReport(partnerId, null, { facts, notification });
  await completions.report({ ...report, notification: { ...notification, transactionId: report.id } });
  expect((await transactions.find(partnerId, report.id))?.facts).toEqual(facts);
});

import { expect, test } from "vitest";
import { openTestDatabase } from "../../../../../test/support/connections.ts";
import { newId } from "../../ids.ts";
import { createHistory, insertLease, insertPartner, sampleInit, sampleReport } from "../rows.fixture.ts";
import { PostgresCompletions } from "./completions.ts";
import { postgresDueKinds, postgresWaitingReports } from "./due.ts";
import { PostgresTransactions } from "./transactions.ts";

const connections = await openTestDatabase();
const { pool } = connections;
await createHistory(pool);
const kinds = postgresDueKinds(connections.homes);

test("names a kind from the moment when one of its rows is due until none is", async () => {
  const partnerId = await insertPartner(pool);
  expect(await kinds.due()).toEqual([]);
  const { id } = sampleInit(partnerId, await insertLease(pool));
  await new PostgresTransactions(connections).begin({ ...sampleInit(partnerId, await insertLease(pool)), id });
  expect(await kinds.due()).toEqual(["commands"]);
  await pool.query("UPDATE transactions SET state = 'SUCCESS'");
  expect(await kinds.due()).toEqual([]);

  const due = async (moment: string) => {
    await pool.query(`UPDATE transactions SET compare_at = ${moment}, notify_at = ${moment}`);
    await pool.query(`UPDATE reversals SET due_at = ${moment}`);
    await pool.query(`UPDATE settlements SET due_at = ${moment}`);
    return kinds.due();
  };
  await pool.query("INSERT INTO reversals (partner_id, transaction_id, tid) VALUES ($1, $2, 'T1')", [partnerId, id]);
  await pool.query(
    "INSERT INTO settlements (partner_id, id, kind, tid, batch_id) VALUES ($1, $2, 'SETTLEMENT', 'T1', $3)",
    [partnerId, id, newId()],
  );
  expect(await due("now() + interval '1 minute'")).toEqual([]);
  const all = ["comparisons", "reports", "reversals", "settlements"];
  expect([...(await due("now()"))].sort()).toEqual(all);
  await pool.query("UPDATE reversals SET state = 'PARKED'");
  expect([...(await kinds.due())].sort()).toEqual(all.filter((kind) => kind !== "reversals"));
});

test("a report waits since it was made, and is not looked at again once its notification was made", async () => {
  const [completions, waiting] = [
    new PostgresCompletions(connections.homes),
    postgresWaitingReports(connections.homes),
  ];
  const report = sampleReport(await insertPartner(pool), { command: "VOID", waitsForOriginal: true });
  await pool.query("UPDATE transactions SET notify_at = NULL");
  await completions.report(report);
  const { partnerId, id, notification } = report;
  if (notification === null) throw new Error("it has one");
  await pool.query("UPDATE transactions SET created_at = now() - interval '1 hour', notify_at = now() WHERE id = $1", [
    id,
  ]);
  const [due] = await waiting.claimDue(10, 60_000);
  if (due === undefined) throw new Error("it is due");
  expect(due.ageMs).toBeGreaterThanOrEqual(3_600_000);
  await waiting.postpone(due, 0);
  expect(await waiting.claimDue(10, 60_000)).toMatchObject([{ partnerId, id }]);
  const { chainId } = report;
  await completions.release({
    partnerId,
    id,
    originalId: null,
    chainId,
    batchId: null,
    facts: due.facts,
    notification,
  });
  await waiting.postpone(due, 0);
  expect(await waiting.claimDue(10, 60_000)).toEqual([]);
});

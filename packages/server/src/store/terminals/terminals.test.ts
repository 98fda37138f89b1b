import { expect, test } from "vitest";
import { openTestDatabase } from "../../../../../test/support/connections.ts";
import { lockWaits } from "../../../../../test/support/locks.ts";
import { newId } from "../../ids.ts";
import { completeTerminal } from "../../partners/terminal.ts";
import { createHistory, insertPartner } from "../rows.fixture.ts";
import { isRegisteredDevice, postgresTerminals } from "./terminals.ts";

const connections = await openTestDatabase();
await createHistory(connections.pool);
const terminals = postgresTerminals(connections.homes);
await connections.pool.query(
  "INSERT INTO acquirers (name, profile, hosts, tls, ca, certificate, version) VALUES ('bank', '{}', '{}', false, '', '', gen_random_uuid())",
);

test("a registration that meets the terminal's first command leaves its mid as the command has it", async () => {
  const partnerId = await insertPartner(connections.pool);
  const command = await connections.pool.connect();
  await command.query("BEGIN");
  const insert = "INSERT INTO terminals (partner_id, tid, mid, batch_closing) VALUES ($1, 'T1', 'M1', true)";
  await command.query(insert, [partnerId]);
  const put = (mid: string) => terminals.upsert(partnerId, completeTerminal("T1", { mid, appName: "app" }), 30);
  const other = put("M2");
  await lockWaits(connections.pool);
  await command.query("COMMIT");
  command.release();
  expect(await other).toEqual({ outcome: "busy" });
  expect(await put("M1")).toMatchObject({ outcome: "put", terminal: { mid: "M1", appName: "app" } });
});

test("a search finds terminals of every partner by tid, mid or the beginning of the merchant's name", async () => {
  const [one, other] = [await insertPartner(connections.pool), await insertPartner(connections.pool)];
  await terminals.upsert(one, completeTerminal("F1", { mid: "FM1", merchantName: "Cafe 100%" }), 30);
  await terminals.upsert(other, completeTerminal("F2", { mid: "FM1", merchantName: "The cafe" }), 30);
  const found = async (text: string, limit = 10) =>
    (await terminals.search(text, limit)).map(({ partnerId, tid }) => [partnerId, tid]);
  expect(await found("F1")).toEqual([[one, "F1"]]);
  const both = [
    [one, "F1"],
    [other, "F2"],
  ];
  expect(await found("FM1")).toEqual(both);
  expect(await found("FM1", 1)).toEqual([both[0]]);
  expect(await found("CAFE 100%")).toEqual([both[0]]);
  expect(await found("%")).toEqual([]);
});

test("a registration is changed as a whole, frees what it was before, and is listed by its partner in pages", async () => {
  const [one, other] = [await insertPartner(connections.pool), await insertPartner(connections.pool)];
  const described = (n: number) => ({
    merchantId: `I${n}`,
    merchantName: `N${n}`,
    merchantAddress: `A${n}`,
    appName: `P${n}`,
  });
  const put = (partnerId: typeof one, tid: string, more: object = {}) =>
    terminals.upsert(partnerId, completeTerminal(tid, { mid: "LM1", ...more }), 30);
  await put(one, "L1", { ...described(1), deviceId: "D1" });
  const changed = { ...described(2), deviceId: "D2", acquirer: "bank" };
  await put(one, "L1", changed);
  expect(await terminals.find(one, "L1")).toEqual(completeTerminal("L1", { mid: "LM1", ...changed }));
  const devices = [one, one, other].map((id, nth) =>
    isRegisteredDevice(connections.homes, id, nth === 0 ? "D1" : "D2"),
  );
  expect(await Promise.all(devices)).toEqual([false, true, false]);
  expect(await put(other, "L1")).toMatchObject({ outcome: "put" });
  for (const tid of ["L3", "L2"]) await put(one, tid);
  const page = async (after?: string) => (await terminals.list(one, after, 2)).map(({ tid }) => tid);
  expect([await page(), await page("L2")]).toEqual([["L1", "L2"], ["L3"]]);
  expect(await put(other, "L1", { acquirer: "bank" }), "what it did not change").toMatchObject({ outcome: "taken" });
});

test("a registration at an acquirer that is being removed waits, and finds none", async () => {
  const partnerId = await insertPartner(connections.pool);
  const removal = await connections.pool.connect();
  await removal.query("BEGIN");
  await removal.query("SELECT FROM acquirers WHERE name = 'bank' FOR UPDATE");
  const put = terminals.upsert(partnerId, completeTerminal("A1", { mid: "AM1", acquirer: "bank" }), 30);
  await lockWaits(connections.pool);
  await removal.query("UPDATE acquirers SET name = 'gone' WHERE name = 'bank'");
  await removal.query("COMMIT");
  expect(await put).toEqual({ outcome: "no_such_acquirer" });
  await removal.query("UPDATE acquirers SET name = 'bank'");
  removal.release();
});

test("a registration takes no terminal that its holder has registered meanwhile", async () => {
  const [claimant, owner] = [await insertPartner(connections.pool), await insertPartner(connections.pool)];
  const claims = "INSERT INTO terminal_claims (mid, tid, partner_id, is_registered) VALUES ('HM1', 'H1', $1, false)";
  await connections.pool.query(claims, [claimant]);
  await connections.pool.query("INSERT INTO terminals (partner_id, tid, mid) VALUES ($1, 'H1', 'HM1')", [claimant]);
  const holder = await connections.pool.connect();
  await holder.query("BEGIN");
  await holder.query("SELECT FROM terminals WHERE tid = 'H1' FOR UPDATE");
  const put = terminals.upsert(owner, completeTerminal("H1", { mid: "HM1" }), 30);
  await lockWaits(connections.pool);
  await holder.query("UPDATE terminal_claims SET is_registered = true WHERE tid = 'H1'");
  await holder.query("COMMIT");
  holder.release();
  expect(await put).toMatchObject({ outcome: "taken", holder: claimant });
});

test.each(["registration", "release"])("a %s that waits for a command finds what it left open", async (kind) => {
  const [claimant, owner] = [await insertPartner(connections.pool), await insertPartner(connections.pool)];
  const terminal = completeTerminal(`T-${kind}`, { mid: "M3" });
  const { tid, mid } = terminal;
  const claim = "INSERT INTO terminal_claims (mid, tid, partner_id, is_registered) VALUES ($1, $2, $3, false)";
  await connections.pool.query(claim, [mid, tid, claimant]);
  const insert = "INSERT INTO terminals (partner_id, tid, mid) VALUES ($1, $2, $3)";
  await connections.pool.query(insert, [claimant, tid, mid]);
  const change = () =>
    kind === "release" ? terminals.remove(claimant, tid, 30) : terminals.upsert(owner, terminal, 30);
  const command = await connections.pool.connect();
  await command.query("BEGIN");
  await command.query("SELECT FROM terminals WHERE partner_id = $1 AND tid = $2 FOR UPDATE", [claimant, tid]);
  const changed = change();
  await lockWaits(connections.pool);
  const reversal = "INSERT INTO reversals (partner_id, transaction_id, tid, state) VALUES ($1, $2, $3, 'PENDING')";
  await command.query(reversal, [claimant, newId(), tid]);
  await command.query("COMMIT");
  command.release();
  expect(await changed).toMatchObject(
    kind === "release" ? { outcome: "busy" } : { outcome: "taken", holder: claimant, isRegistered: false },
  );
  await connections.pool.query("DELETE FROM reversals WHERE partner_id = $1", [claimant]);
  expect((await change()).outcome).toBe(kind === "release" ? "removed" : "put");
});

test("a registration that fails, or is refused, leaves the partner's own terminal with its mid", async () => {
  const [one, other] = [await insertPartner(connections.pool), await insertPartner(connections.pool)];
  const put = (partnerId: typeof one, mid: string) => terminals.upsert(partnerId, completeTerminal("C1", { mid }), 30);
  await put(one, "CM1");
  await put(other, "CM2");
  await expect(put(one, "\0")).rejects.toThrow();
  expect(await put(one, "CM2")).toMatchObject({ outcome: "taken", holder: other });
  expect(await put(other, "CM1")).toMatchObject({ outcome: "taken", holder: one });
});

test("a terminal is held by one partner for each acquirer", async () => {
  const claimant = await insertPartner(connections.pool);
  const [owner, other] = [await insertPartner(connections.pool), await insertPartner(connections.pool)];
  const claim = "INSERT INTO terminal_claims (mid, tid, partner_id, is_registered) VALUES ('AM', 'A1', $1, false)";
  await connections.pool.query(claim, [claimant]);
  const put = (partnerId: typeof owner, acquirer: string) =>
    terminals.upsert(partnerId, completeTerminal("A1", { mid: "AM", acquirer }), 30);
  expect(await put(owner, "bank")).toMatchObject({ outcome: "put" });
  expect(await put(other, "bank")).toEqual({ outcome: "taken", holder: owner, isRegistered: true });
  expect(await put(other, "no such bank")).toEqual({ outcome: "no_such_acquirer" });
});

const insertTransaction = (commandAndState: string, batchId = "batch_id") => `
  INSERT INTO transactions (partner_id, id, origin, command, state, req_id, chain_id, facts, tid, batch_id)
  SELECT partner_id, r.id, 'command', ${commandAndState}, r.id::text, r.id, '{"fields":{}}', tid, ${batchId}
  FROM terminals, gen_random_uuid() AS r (id) WHERE partner_id = $1 AND tid = $2`;

test.each([
  ["its batch is being settled", "UPDATE terminals SET batch_closing = true WHERE partner_id = $1 AND tid = $2"],
  [
    "the next Settlement has a batch to report that was settled late",
    `UPDATE terminals SET late_settlement = '{"state": "closed"}' WHERE partner_id = $1 AND tid = $2`,
  ],
  ["something in its batch counts", insertTransaction("'SALE', 'SUCCESS'")],
  ["a command is in flight", insertTransaction("'SALE', 'INIT'")],
  [
    "a Reversal is under way",
    "INSERT INTO reversals (partner_id, transaction_id, tid) VALUES ($1, gen_random_uuid(), $2)",
  ],
  [
    "an operator may let something in its batch stand",
    `INSERT INTO reversals (partner_id, transaction_id, tid, state)
     SELECT partner_id, id, tid, 'PARKED' FROM transactions WHERE partner_id = $1 AND tid = $2`,
  ],
  ["a PreAuth can be completed", insertTransaction("'PREAUTH', 'SUCCESS'", "NULL")],
])("a terminal keeps its mid and acquirer, and is not released, while %s", async (_, begin) => {
  const partnerId = await insertPartner(connections.pool);
  const tid = `K-${partnerId}`;
  const put = (mid: string, acquirer = "") => terminals.upsert(partnerId, completeTerminal(tid, { mid, acquirer }), 30);
  await put("M1");
  await connections.pool.query(insertTransaction("'SALE', 'ERROR'"), [partnerId, tid]);
  await connections.pool.query(begin, [partnerId, tid]);
  expect([await put("M2"), await put("M1", "bank")]).toEqual([{ outcome: "busy" }, { outcome: "busy" }]);
  expect(await terminals.remove(partnerId, tid, 30)).toEqual({ outcome: "busy" });
  for (const table of ["transactions", "reversals"])
    await connections.pool.query(`DELETE FROM ${table} WHERE partner_id = $1`, [partnerId]);
  const quiet = "UPDATE terminals SET batch_closing = false, late_settlement = NULL WHERE partner_id = $1";
  await connections.pool.query(quiet, [partnerId]);
  for (const [row, ended] of [
    [insertTransaction("'SALE', 'SUCCESS'"), "reversal_state = 'done'"],
    [insertTransaction("'PREAUTH', 'SUCCESS'", "NULL"), "created_at = now() - interval '31 days'"],
    [
      insertTransaction("'PREAUTH', 'SUCCESS'", "NULL"),
      "successor_id = gen_random_uuid(), successor_command = 'VOID', successor_state = 'done'",
    ],
  ] as const) {
    await connections.pool.query(row, [partnerId, tid]);
    await connections.pool.query(`UPDATE transactions SET ${ended} WHERE partner_id = $1`, [partnerId]);
    expect((await put("M2")).outcome, ended).toBe("put");
    await connections.pool.query("DELETE FROM transactions WHERE partner_id = $1", [partnerId]);
    await put("M1");
  }
  expect((await put("M2")).outcome).toBe("put");
  expect((await terminals.remove(partnerId, tid, 30)).outcome).toBe("removed");
});

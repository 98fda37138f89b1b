import { createSecretKey, randomBytes } from "node:crypto";
import type { QueryResult } from "pg";
import { expect, test, vi } from "vitest";
import { openOwnDatabase } from "../../../../../test/support/connections.ts";
import { newId, type ProposalId } from "../../ids.ts";
import { AuditKeys, firstHash } from "../../operators/audit.ts";
import { PostgresAudit } from "./audit.ts";
import { postgresProposals } from "./proposals.ts";

const parts = { keys: { mac: () => Buffer.of(1), isRight: (mac: Buffer) => mac[0] === 1 }, entryText: () => "" };
const input = { name: "Mallory", role: "admin" };

function proposal(id: ProposalId) {
  const proposer = { name: "Ada", tokenId: "t1", subject: null };
  return { id, action: "addOperator", partnerId: null, input, proposer } as const;
}

test("the first start with the setting begins the rule, and no later one changes it", async () => {
  const connections = await openOwnDatabase({ as: "service" });
  const proposals = postgresProposals(connections.pool, parts);
  expect(await proposals.rule()).toBe(0);
  await proposals.beginRule(60);
  await proposals.beginRule(5);
  expect(await proposals.rule()).toBe(60);
  await proposals.changeRule(0);
  await proposals.beginRule(60);
  expect(await proposals.rule()).toBe(0);
});

test("the rule stays in force if somebody lowers it in the database", async () => {
  const connections = await openOwnDatabase({ as: "service" });
  const { pool } = connections;
  const proposals = postgresProposals(pool, parts);
  const audit = new PostgresAudit(pool, () => Buffer.of(1));
  const forger = new PostgresAudit(pool, () => Buffer.of(9));
  const who = { actor: "Ada", role: "admin", tokenId: "t", address: "127.0.0.1", subject: "", before: "" };
  const compose = async () => {
    const after = JSON.stringify({ minutes: await proposals.rule() });
    return { ...who, atMs: Date.now(), action: "changeTwoAdminRule", after };
  };
  const change = (minutes: number, by = audit) =>
    by.during({ compose, hashOf: () => () => firstHash, appended: () => {}, failed: () => {} }, () =>
      proposals.changeRule(minutes),
    );
  await change(60);
  await pool.query("UPDATE two_admin_rule SET minutes = 0");
  expect(await proposals.rule()).toBe(60);
  await change(0, new PostgresAudit(pool, () => null));
  for (let forged = 0; forged <= 100; forged += 1) await change(0, forger);
  const query = vi.spyOn(pool, "query");
  expect(await proposals.rule()).toBe(60);
  const answers = (await Promise.all(query.mock.results.map(({ value }) => value))) as unknown as QueryResult[];
  query.mockRestore();
  // However many entries there are, each query reads a page of them.
  expect(Math.max(...answers.map(({ rows }) => rows.length))).toBe(100);
  await expect(pool.query("DELETE FROM two_admin_rule")).rejects.toMatchObject({ code: "42501" });
  await change(0);
  expect(await proposals.rule()).toBe(0);
});

test("a proposal under a key of before a rotation is nobody's: the key may have been seen", async () => {
  const { pool } = await openOwnDatabase({ as: "service" });
  const [key, id] = [createSecretKey(randomBytes(32)), newId<"proposal">()];
  const first = { key, usedFromMs: 0 };
  let nowMs = 1;
  const keys = new AuditKeys([first], key, () => nowMs);
  const proposals = postgresProposals(pool, { ...parts, keys });
  await proposals.add(proposal(id), 60);
  keys.learn([first, { key: createSecretKey(randomBytes(32)), usedFromMs: 2 }]);
  expect(await proposals.find(id)).toMatchObject(proposal(id));
  nowMs = 2;
  expect([await proposals.find(id), await proposals.list()]).toEqual([undefined, []]);
});

test("a proposal is taken once, and not after its time", async () => {
  const connections = await openOwnDatabase({ as: "service" });
  const proposals = postgresProposals(connections.pool, parts);
  const [kept, expired] = [newId<"proposal">(), newId<"proposal">()];
  expect(await proposals.add(proposal(kept), 60)).toMatchObject(proposal(kept));
  await proposals.add(proposal(expired), 60);
  await connections.pool.query("UPDATE proposals SET expires_at = now() WHERE id = $1", [expired]);
  expect((await proposals.list()).map(({ id }) => id)).toEqual([kept]);
  expect(await proposals.find(expired)).toBeUndefined();
  expect(await proposals.take(expired)).toBe(false);
  // All of them wait for the row at once.
  const holder = await connections.engine.connect();
  await holder.query("BEGIN");
  await holder.query("SELECT FROM proposals WHERE id = $1 FOR UPDATE", [kept]);
  const taking = Promise.all([1, 2, 3].map(() => proposals.take(kept)));
  const waiting = () =>
    connections.engine
      .query("SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'")
      .then(({ rows }) => rows.length);
  await expect.poll(waiting).toBe(3);
  await holder.query("COMMIT");
  holder.release();
  expect((await taking).toSorted()).toEqual([false, false, true]);
  expect(await proposals.find(kept)).toBeUndefined();
});

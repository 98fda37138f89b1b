import { expect, onTestFinished, test } from "vitest";
import { createDatabase } from "../../../../../test/support/database.ts";
import { newId, type ProposalId } from "../../ids.ts";
import { openDatabase } from "../database/database.ts";
import { PostgresProposals } from "./proposals.ts";

const input = { name: "Mallory", role: "admin" };

function proposal(id: ProposalId) {
  const proposer = { name: "Ada", tokenId: "t1", subject: null };
  return { id, action: "addOperator", partnerId: null, input, proposer } as const;
}

test("a proposal is taken once, and not after its time", async () => {
  const database = await createDatabase();
  const connections = openDatabase(database.serviceUrl, { connectionsMax: 4, onIdleError: () => {} });
  onTestFinished(async () => {
    await connections.close();
    await database.drop();
  });
  const proposals = new PostgresProposals(connections.pool);
  const [kept, expired] = [newId<"proposal">(), newId<"proposal">()];
  expect(await proposals.add(proposal(kept), 60)).toMatchObject(proposal(kept));
  await proposals.add(proposal(expired), 60);
  await connections.pool.query("UPDATE proposals SET expires_at = now() WHERE id = $1", [expired]);
  expect((await proposals.list()).map(({ id }) => id)).toEqual([kept]);
  expect(await proposals.find(expired)).toBeUndefined();
  expect(await proposals.take(expired)).toBe(false);
  const taken = await Promise.all([1, 2, 3, 4].map(() => proposals.take(kept)));
  expect(taken.filter(Boolean)).toHaveLength(1);
  expect(await proposals.find(kept)).toBeUndefined();
});

import type { PoolClient } from "pg";
import { expect, onTestFinished, test } from "vitest";
import { openTestDatabase } from "../../../../../test/support/connections.ts";
import { lockWaits } from "../../../../../test/support/locks.ts";
import { createHistory, insertLease, insertPartner, sampleInit } from "../rows.fixture.ts";
import { claimTerminals } from "./terminals.ts";

const connections = await openTestDatabase();
await createHistory(connections.pool);
const leaseId = await insertLease(connections.pool);

test("first commands that begin in two transactions at once claim no more terminals than the quota", async () => {
  const partnerId = await insertPartner(connections.pool);
  const claim = async (client: PoolClient, ...tids: string[]) => {
    const inits = tids.map((tid) => sampleInit(partnerId, leaseId, { tid, claimsMax: 3, sharesTerminals: false }));
    const { fresh, beyondQuota } = await claimTerminals(client, inits);
    return { claimed: fresh.length, beyond: beyondQuota.size };
  };
  const [one, other] = [await connections.pool.connect(), await connections.pool.connect()];
  await one.query("BEGIN");
  await other.query("BEGIN");
  expect(await claim(one, "T1", "T2")).toEqual({ claimed: 2, beyond: 0 });
  const second = claim(other, "T3", "T4");
  await lockWaits(connections.pool);
  await one.query("COMMIT");
  expect(await second).toEqual({ claimed: 2, beyond: 1 });
  await other.query("ROLLBACK");
  one.release();
  other.release();
});

test("a claim excludes others from its tid at its acquirer, and what is registered counts for no quota", async () => {
  const [own, other] = [await insertPartner(connections.pool), await insertPartner(connections.pool)];
  const { mid } = sampleInit(own, leaseId);
  const claims = `INSERT INTO terminal_claims (acquirer, mid, tid, partner_id, is_registered)
    VALUES ('', $1, 'C1', $3, false), ('bank', $1, 'C2', $3, false), ('', $1, 'C3', $2, true)`;
  await connections.pool.query(claims, [mid, own, other]);
  const client = await connections.pool.connect();
  onTestFinished(() => client.release());
  const inits = ["C1", "C2"].map((tid) => sampleInit(own, leaseId, { tid, claimsMax: 1, sharesTerminals: false }));
  expect(await claimTerminals(client, inits)).toEqual({
    taken: new Set([`${own} C1`]),
    beyondQuota: new Set(),
    fresh: [{ mid, tid: "C2", partner_id: own }],
  });
});

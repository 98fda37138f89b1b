import { randomBytes } from "node:crypto";
import { expect, test } from "vitest";
import { openTestDatabase } from "../../../../../test/support/connections.ts";
import type { PartnerId } from "../../ids.ts";
import {
  loadOrCreateKey,
  MasterKey,
  type ReSealStore,
  requireFittingMasterKey,
  resealAll,
} from "../../partners/master-key.ts";
import { postgresPartners, postgresReSeal } from "./partners.ts";
import { openRegistry, sampleInput } from "./registry.fixture.ts";

const [oldRaw, newRaw] = [randomBytes(32), randomBytes(32)];
const before = new MasterKey(oldRaw);
/** Services during the rotation: first one seals, then the other, and both open. */
const [during, then] = [new MasterKey(oldRaw, [newRaw]), new MasterKey(newRaw, [oldRaw])];
const after = new MasterKey(newRaw);
const partnersCount = 80;

const ids: PartnerId[] = [];

const keyOf = async (masterKey: MasterKey, id: PartnerId) =>
  (await openRegistry(connections, masterKey).directory.find(id))?.keys.encryption.key.export().toString("hex");

async function register(masterKey: MasterKey): Promise<PartnerId> {
  return (await openRegistry(connections, masterKey).registry.register(sampleInput)).partner.id;
}

const connections = await openTestDatabase({ as: "service" });
const store = postgresPartners(connections);
const reseal = postgresReSeal(connections.pool);
await requireFittingMasterKey(before, store);
while (ids.length < partnersCount) ids.push(await register(before));
test("a service with both keys opens what either sealed, at every step of a rotation", async () => {
  const [first = ids[0]] = ids;
  const known = await keyOf(before, first as PartnerId);
  const bodyKey = (await loadOrCreateKey(before, store, "request bodies")).export();
  const swapped = await register(then);
  ids.push(swapped);
  for (const service of [during, then]) {
    await requireFittingMasterKey(service, store);
    expect(await keyOf(service, first as PartnerId)).toBe(known);
    expect(await keyOf(service, swapped)).toEqual(expect.any(String));
  }
  await expect(keyOf(before, swapped)).rejects.toThrow("another master key");

  let batches = 0;
  const interrupted: ReSealStore = {
    ...reseal,
    reseal: (keys) => (++batches === 2 ? Promise.reject(new Error("the machine is gone")) : reseal.reseal(keys)),
  };
  await expect(resealAll(interrupted, then)).rejects.toThrow("the machine is gone");
  for (const service of [during, then]) {
    for (const id of [first as PartnerId, ids.at(-1) as PartnerId]) expect(await keyOf(service, id)).toBeDefined();
  }

  const told: number[] = [];
  const done = await resealAll(reseal, then, (sealed) => told.push(sealed));
  // Three keys each. The first batch of 100 was done before, and the newest partner's needed nothing.
  expect(done).toEqual({ sealed: partnersCount * 3 - 100, notOpened: 0 });
  expect(told.at(-1)).toBe(done.sealed);
  expect(await resealAll(reseal, then)).toEqual({ sealed: 0, notOpened: 0 });

  await requireFittingMasterKey(after, store);
  expect(await keyOf(after, first as PartnerId)).toBe(known);
  expect((await loadOrCreateKey(after, store, "request bodies")).export()).toEqual(bodyKey);
  await expect(requireFittingMasterKey(before, store)).rejects.toThrow("does not fit");
});

test("values that no given key opens are left as they are, and counted; those behind a page of them are sealed", async () => {
  const lost = await register(new MasterKey(randomBytes(32)));
  for (let more = 0; more < 33; more += 1) await register(new MasterKey(randomBytes(32)));
  await register(before);
  const row = "SELECT material FROM partner_keys WHERE partner_id = $1 ORDER BY id";
  const { rows } = await connections.pool.query(row, [lost]);
  expect(await resealAll(reseal, then)).toEqual({ sealed: 3, notOpened: 34 * 3 });
  expect((await connections.pool.query(row, [lost])).rows).toEqual(rows);
});

test("a value that changed meanwhile stays as it is", async () => {
  const [key] = await reseal.sealedByOthers("no master key", undefined, 1);
  const [named] = await reseal.namedValues();
  if (key === undefined || named === undefined) throw new Error("nothing is sealed");
  const [before, after] = [Buffer.from("before"), Buffer.from("after")];
  await reseal.reseal([{ from: { ...key, material: before }, material: after }]);
  await reseal.resealNamed(named.name, before, after);
  expect(await reseal.sealedByOthers("no master key", undefined, 1)).toEqual([key]);
  expect((await reseal.namedValues())[0]).toEqual(named);
});

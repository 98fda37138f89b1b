import { describe, expect, test } from "vitest";
import { openTestDatabase } from "../../../../../test/support/connections.ts";
import { systemClock } from "../../clock.ts";
import { newId } from "../../ids.ts";
import { ApiKeys, type NewApiKey } from "../../partners/api-keys.ts";
import { MasterKey } from "../../partners/master-key.ts";
import { type RowSeal, sealOf } from "../operators/row-seals.ts";
import { postgresPartners } from "./partners.ts";
import { openRegistry, sampleInput } from "./registry.fixture.ts";

const masterKey = MasterKey.generate();
const connections = await openTestDatabase({ as: "service" });
const store = postgresPartners(connections);
const { directory, registry } = openRegistry(connections, masterKey);
const keys = new ApiKeys(store, systemClock, (changed) => directory.invalidate(changed));
const { partner, secrets } = await registry.register(sampleInput);
const { id } = partner;
const first = secrets.apiKey;
const keyOf = async (keyId: string) => (await registry.find(id))?.keys.find((key) => key.id === keyId);

test("several stand at once, each with its own scopes; the first one allows everything", async () => {
  const till = await keys.add(id, { name: "till", scopes: ["commands", "read"] }, null);
  expect(await directory.findByApiKey(till.apiKey)).toMatchObject({ keyId: till.id, scopes: ["commands", "read"] });
  expect(await directory.findByApiKey(first)).toMatchObject({ partner: { id }, scopes: null });
  expect(await keyOf(till.id)).toMatchObject({ name: "till", scopes: ["commands", "read"], lastUsedAt: null });
  const { rows } = await connections.pool.query("SELECT material FROM partner_keys WHERE id = $1", [till.id]);
  expect(rows[0].material.toString()).not.toContain(till.apiKey);
});

test("the seal of one covers what it allows, in a form that keys sealed before have too", async () => {
  const till = await keys.add(id, { name: "till", scopes: ["commands", "read"] }, null);
  const select = `SELECT ${sealOf("partner_keys")} AS seal FROM partner_keys t WHERE t.id = $1`;
  const { rows } = await connections.pool.query<{ seal: RowSeal }>(select, [till.id]);
  expect(JSON.parse(rows[0]?.seal.text ?? "")).toEqual([
    ...["apiKey", id, till.id, "apiKey", expect.stringMatching(/^[0-9a-f]{64}$/), expect.any(Number), null],
    ...["till", ["commands", "read"]],
  ]);
});

test("one that is revoked is refused at once, and the others stand", async () => {
  const [lost, kept] = [
    await keys.add(id, { name: "lost", scopes: ["pull"] }, null),
    await keys.add(id, { name: "kept", scopes: ["pull"] }, null),
  ];
  await keys.revoke(id, lost.id, null);
  expect(await directory.findByApiKey(lost.apiKey)).toBeUndefined();
  expect(await directory.findByApiKey(kept.apiKey)).toBeDefined();
  await expect(keys.revoke(id, newId(), null)).rejects.toMatchObject({ code: "not_found" });
  await expect(keys.revoke(newId(), kept.id, null)).rejects.toMatchObject({ code: "not_found" });
});

test("one that another makes ends with it at the latest", async () => {
  const maker = await keys.add(id, { name: "guest", scopes: ["manage"], expiresInDays: 2 }, null);
  const endOf = async (input: Pick<NewApiKey, "expiresInDays">) => {
    const made = await keys.add(id, { name: "of the guest", scopes: ["manage"], ...input }, ["manage"], maker.id);
    return (await keyOf(made.id))?.expiresAt;
  };
  const end = (await keyOf(maker.id))?.expiresAt;
  expect(Math.round((Number(end) - Date.now()) / 86_400_000)).toBe(2);
  expect(await endOf({})).toEqual(end);
  expect(await endOf({ expiresInDays: 3 })).toEqual(end);
  expect(Number(await endOf({ expiresInDays: 1 }))).toBeLessThan(Number(end));
});

describe("a partner's own key", () => {
  async function partnerWithKeys() {
    const registered = await registry.register(sampleInput);
    const partnerId = registered.partner.id;
    const first = registered.partner.keys.find(({ kind }) => kind === "apiKey")?.id ?? newId<"key">();
    const add = (scopes: NewApiKey["scopes"], expiresInDays?: number) =>
      keys.add(partnerId, { name: "more", scopes, expiresInDays }, null);
    const isValid = async ({ apiKey }: { readonly apiKey: string }) =>
      (await directory.findByApiKey(apiKey)) !== undefined;
    return { partnerId, first, mainKey: { apiKey: registered.secrets.apiKey }, add, isValid };
  }

  test("revokes none that allows more than itself, whatever the operator may", async () => {
    const { partnerId, first, mainKey, add, isValid } = await partnerWithKeys();
    await add(["manage"]);
    const reader = await add(["read", "manage"]);
    for (const [keyId, by] of [
      [first, ["manage"]],
      [first, ["read", "pull", "commands", "manage"]],
      [reader.id, ["manage"]],
    ] as const) {
      await expect(keys.revoke(partnerId, keyId, by)).rejects.toMatchObject({ code: "scope_not_allowed" });
    }
    expect([await isValid(mainKey), await isValid(reader)]).toEqual([true, true]);
    await keys.revoke(partnerId, reader.id, ["manage", "read"]);
    await keys.revoke(partnerId, first, "operator");
    expect([await isValid(mainKey), await isValid(reader)]).toEqual([false, false]);
  });

  test("never revokes the last one with manage that is valid as long", async () => {
    const { partnerId, first, mainKey, add, isValid } = await partnerWithKeys();
    await add(["read", "pull", "commands"]);
    await add(["manage"], 1);
    await expect(keys.revoke(partnerId, first, null)).rejects.toMatchObject({ code: "last_managing_key" });
    expect(await isValid(mainKey)).toBe(true);
    const lasting = await add(["manage"]);
    await keys.revoke(partnerId, first, null);
    expect([await isValid(mainKey), await isValid(lasting)]).toEqual([false, true]);
    // One that has ended already is in nobody's way.
    await keys.revoke(partnerId, first, null);
    await keys.revoke(partnerId, lasting.id, "operator");
    expect(await isValid(lasting)).toBe(false);
  });

  test("is not revoked by one that it revokes at the same time", async () => {
    const { partnerId, first, add, isValid } = await partnerWithKeys();
    const two = [await add(["manage"]), await add(["manage"])];
    await keys.revoke(partnerId, first, "operator");
    const results = await Promise.allSettled(two.map(({ id: keyId }) => keys.revoke(partnerId, keyId, ["manage"])));
    expect(results.map(({ status }) => status).sort()).toEqual(["fulfilled", "rejected"]);
    expect((await Promise.all(two.map(isValid))).filter(Boolean)).toHaveLength(1);
  });
});

test("another kind of key is not revoked by its id", async () => {
  const signing = (await registry.find(id))?.keys.find(({ kind }) => kind === "signingKey");
  await expect(keys.revoke(id, signing?.id ?? newId(), "operator")).rejects.toMatchObject({ code: "not_found" });
});

test("replacing the first key leaves those with a name alone", async () => {
  const named = await keys.add(id, { name: "reports", scopes: ["read"] }, null);
  const { secret } = await registry.rotate(id, "apiKey", 0);
  expect(await directory.findByApiKey(first)).toBeUndefined();
  expect(await directory.findByApiKey(secret)).toMatchObject({ scopes: null });
  expect(await directory.findByApiKey(named.apiKey)).toMatchObject({ scopes: ["read"] });
});

test("when each was last used is kept to the minute, without a write for every call", async () => {
  const { id: keyId } = await keys.add(id, { name: "used", scopes: ["read"] }, null);
  let writes = 0;
  const counting = new ApiKeys(
    {
      addApiKey: () => Promise.reject(new Error("not asked for")),
      endApiKey: () => Promise.reject(new Error("not asked for")),
      apiKeyUsed: async (partnerId, usedId) => {
        writes += 1;
        if (nowMs > 60_000) throw new Error("no database");
        await postgresPartners(connections).apiKeyUsed(partnerId, usedId);
      },
    },
    { monotonicMs: () => nowMs },
  );
  let nowMs = 0;
  for (nowMs of [0, 30_000, 59_999, 60_000]) counting.used(id, keyId);
  await expect.poll(async () => (await keyOf(keyId))?.lastUsedAt).toEqual(expect.any(Date));
  expect(writes).toBe(2);
  // One that could not be stored is stored with the next call.
  for (nowMs of [120_000, 120_001]) {
    counting.used(id, keyId);
    await new Promise(setImmediate);
  }
  expect(writes).toBe(4);
});

test("one whose COMMIT had no answer is not said to be refused: it may exist", async () => {
  const connect = async () => {
    const client = await connections.pool.connect();
    const query = async (...sent: Parameters<typeof client.query>) => {
      const result = await client.query(...sent);
      if (String(sent[0]) === "COMMIT") throw new Error("Connection terminated unexpectedly");
      return result;
    };
    return { query, release: () => client.release() };
  };
  const cut = postgresPartners({ ...connections, pool: { connect } as never });
  const added = new ApiKeys(cut, systemClock).add(id, { name: "unknown", scopes: ["read"] }, null);
  await expect(added).rejects.toMatchObject({ code: "internal", message: expect.stringMatching(/may have been made/) });
  expect((await registry.find(id))?.keys.filter(({ name }) => name === "unknown")).toHaveLength(1);
});

test("a wrong one is refused with its problem, and so is the twenty-first", async () => {
  const wrong = keys.add(id, { name: " ", scopes: [], expiresInDays: 0 }, null);
  await expect(wrong).rejects.toMatchObject({
    fields: [{ field: "name" }, { field: "scopes" }, { field: "expiresInDays" }],
  });
  await expect(keys.add(id, { name: "more", scopes: ["read", "manage"] }, ["read"])).rejects.toMatchObject({
    code: "scope_not_allowed",
  });
  const card = { name: "till 4111 1111 1111 1111", scopes: ["read"] } as const;
  await expect(keys.add(id, card, null)).rejects.toMatchObject({ code: "card_number_in_clear" });
  await expect(keys.add(newId(), { name: "nobody's", scopes: ["read"] }, null)).rejects.toMatchObject({
    code: "not_found",
  });
  const many = await Promise.allSettled(
    Array.from({ length: 25 }, (_, at) => keys.add(id, { name: `k${at}`, scopes: ["read"] }, null)),
  );
  const standing = (await registry.find(id))?.keys.filter(
    ({ kind, expiresAt }) => kind === "apiKey" && (expiresAt === null || expiresAt.getTime() > Date.now()),
  );
  expect(standing).toHaveLength(20);
  expect(many.filter(({ status }) => status === "rejected").length).toBeGreaterThan(4);
});

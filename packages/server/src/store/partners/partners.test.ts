import { describe, expect, onTestFinished, test } from "vitest";
import { openTestDatabase } from "../../../../../test/support/connections.ts";
import { loseDeadlock } from "../../../../../test/support/locks.ts";
import { cardNumberProblem } from "../../commands/requests/rules.ts";
import type { ServiceError } from "../../errors.ts";
import { type KeyId, newId, type PartnerId } from "../../ids.ts";
import type { CachedPartners } from "../../partners/directory.ts";
import { MasterKey, MasterKeyMismatch, requireFittingMasterKey } from "../../partners/master-key.ts";
import type { RotatedKind } from "../../partners/partner.ts";
import type { PartnerRegistry } from "../../partners/registry.ts";
import { SealBudget, sealsReserved } from "../../partners/seal-budget.ts";
import { defaultSettings, type PartnerInput } from "../../partners/settings/settings.ts";
import { watchPlans } from "../plans.fixture.ts";
import { isRegisteredDevice } from "../terminals/terminals.ts";
import { postgresPartners } from "./partners.ts";
import { openRegistry } from "./registry.fixture.ts";

const masterKey = MasterKey.generate();
const input: PartnerInput = {
  name: "A partner",
  callbackAddresses: ["203.0.113.0/24"],
  callingAddresses: ["10.0.0.1"],
};

const connections = await openTestDatabase();
const ofEngine = watchPlans(connections.engine);
const pool = connections.pool;
const partners = postgresPartners(connections);

function service({ historyDays } = { historyDays: 90 }) {
  const onError = (error: unknown) => {
    throw error;
  };
  const rules = { sandbox: false };
  const opened = openRegistry(connections, masterKey, { cardNumberProblem, rules, historyDays, onError });
  onTestFinished(() => opened.directory.stop());
  return opened;
}

/** Moves every time of a partner's keys back, as if this long had passed. */
async function passHours(id: PartnerId, hours: number): Promise<void> {
  await pool.query(
    `UPDATE partner_keys SET active_from = active_from - $2 * interval '1 hour',
       expires_at = expires_at - $2 * interval '1 hour'
     WHERE partner_id = $1`,
    [id, hours],
  );
}

async function currentKeys(directory: CachedPartners, id: PartnerId) {
  await directory.invalidate(id);
  const partner = await directory.find(id);
  if (partner === undefined) throw new Error("the partner is gone");
  const { encryption, signing, webhook } = partner.keys;
  return { encryptionKey: encryption.id, signingKey: signing.id, webhookSecret: webhook.map((secret) => secret.id) };
}

async function refusalOf(work: Promise<unknown>): Promise<ServiceError> {
  return await work.then(
    () => Promise.reject(new Error("it was not refused")),
    (error: ServiceError) => error,
  );
}

describe("a partner", () => {
  test("is registered with its defaults and four keys, and found by them", async () => {
    const { registry, directory } = service();
    const { partner, secrets } = await registry.register(input);
    expect(partner).toMatchObject({ state: "active", settings: { ...defaultSettings, ...input } });
    expect(partner.keys.map((key) => key.kind).sort()).toEqual([
      "apiKey",
      "encryptionKey",
      "signingKey",
      "webhookSecret",
    ]);
    expect(await registry.find(partner.id)).toEqual(partner);
    const found = (await directory.findByApiKey(secrets.apiKey))?.partner;
    expect(found).toMatchObject({ id: partner.id, settings: partner.settings });
    expect(found?.keys.encryption.key.export().toString("base64")).toBe(secrets.encryptionKey);
    expect(found?.keys.signing.key.export().toString("base64")).toBe(secrets.signingKey);
    expect(`whsec_${found?.keys.webhook[0]?.key.export().toString("base64")}`).toBe(secrets.webhookSecret);
  });

  test("leaves no secret in the clear in any table", async () => {
    const { secrets } = await service().registry.register(input);
    const { rows } = await pool.query<{ dump: string }>(
      "SELECT string_agg(k::text, '') || (SELECT string_agg(p::text, '') FROM partners p) AS dump FROM partner_keys k",
    );
    const dump = rows[0]?.dump ?? "";
    expect(dump.length).toBeGreaterThan(100);
    for (const secret of Object.values(secrets)) {
      const raw = Buffer.from(secret.replace("whsec_", ""), "base64");
      expect(dump).not.toContain(secret);
      expect(dump).not.toContain(raw.toString("hex"));
    }
  });

  test("with bad settings is refused, every problem named", async () => {
    const refused = await refusalOf(service().registry.register({ ...input, name: "", timeZone: "here" }));
    expect(refused).toMatchObject({ code: "invalid_value", status: 400 });
    expect(refused.fields.map(({ field }) => field)).toEqual(["name", "timeZone"]);
  });

  test("has a retry schedule that ends before its history is dropped", async () => {
    const { registry } = service();
    const retry = Array(30).fill(86_400);
    const { partner } = await registry.register({ ...input, retry });
    const shorter = service({ historyDays: 36 }).registry;
    const refused = await refusalOf(shorter.register({ ...input, retry }));
    expect(refused.fields).toMatchObject([{ field: "retry", code: "invalid_value" }]);
    expect((await refusalOf(shorter.change(partner.id, { retry }))).fields).toMatchObject([{ field: "retry" }]);
    // One that stood before the retention was shortened does not refuse other changes.
    expect((await shorter.change(partner.id, { maxInFlight: 7 })).settings.retry).toEqual(retry);
  });

  test("changes in what a patch names and stays in the rest", async () => {
    const { registry, directory } = service();
    const { partner } = await registry.register({ ...input, transactionTypes: { VOID: "CANCEL" } });
    await directory.find(partner.id);
    const changed = await registry.change(partner.id, {
      timeZone: "Asia/Ho_Chi_Minh",
      transactionTypes: { PREAUTH: "VOID" },
    });
    expect(changed.settings).toEqual({
      ...partner.settings,
      timeZone: "Asia/Ho_Chi_Minh",
      transactionTypes: { ...partner.settings.transactionTypes, PREAUTH: "VOID" },
    });
    expect(directory.cached(partner.id)?.settings.timeZone).toBe("Asia/Ho_Chi_Minh");
    const refused = await refusalOf(registry.change(partner.id, { callBackUrl: "https://198.51.100.1/" }));
    expect(refused.code).toBe("address_not_whitelisted");
    expect((await registry.find(partner.id))?.settings).toEqual(changed.settings);
  });

  test("loses no change when two come at once", async () => {
    const { registry } = service();
    const { partner } = await registry.register(input);
    await Promise.all([
      registry.change(partner.id, { maxInFlight: 7 }),
      registry.change(partner.id, { maxPerSecond: 9 }),
      registry.setState(partner.id, "paused"),
    ]);
    expect(await registry.find(partner.id)).toMatchObject({
      state: "paused",
      settings: { maxInFlight: 7, maxPerSecond: 9 },
    });
  });

  test("that was paused or disabled has each pause, and the last one ends when it becomes active", async () => {
    const { directory, registry } = service();
    const { partner } = await registry.register(input);
    const pauses = async () => (await directory.find(partner.id))?.pauses ?? [];
    await registry.setState(partner.id, "active");
    const { updatedAt: pausedAt } = await registry.setState(partner.id, "paused");
    await registry.setState(partner.id, "disabled");
    expect(await pauses()).toEqual([]);
    await registry.setState(partner.id, "active");
    await registry.setState(partner.id, "paused");
    await registry.setState(partner.id, "active");
    const [first = [0, 0], second = [0, 0], ...more] = await pauses();
    expect(more).toEqual([]);
    // A disable goes on with the pause before it.
    expect(new Date(first[0])).toEqual(pausedAt);
    expect(first[0]).toBeLessThan(first[1]);
    expect(first[1]).toBeLessThanOrEqual(second[0]);
    expect(Math.abs(second[1] - Date.now())).toBeLessThan(60_000);
    // Whole, however long it was, up to the length of any useful schedule.
    for (const [days, kept] of [
      [399, 399],
      [500, 400],
    ] as const) {
      await registry.setState(partner.id, "paused");
      const stopped = "UPDATE partners SET pauses = '{}', stopped_at = now() - $2 * interval '1 day' WHERE id = $1";
      await pool.query(stopped, [partner.id, days]);
      await registry.setState(partner.id, "active");
      expect((await pauses()).map(([from, to]) => Math.round((to - from) / 86_400_000))).toEqual([kept]);
    }
  });

  test("that is paused, resumed or disabled is seen so at once where it was changed", async () => {
    const { registry, directory } = service();
    const { partner } = await registry.register(input);
    await directory.find(partner.id);
    for (const state of ["paused", "active", "disabled"] as const) {
      expect((await registry.setState(partner.id, state)).state).toBe(state);
      expect(directory.cached(partner.id)?.state).toBe(state);
    }
  });

  test("is listed once, page by page", async () => {
    const { registry } = service();
    const registered: PartnerId[] = [];
    for (let i = 0; i < 5; i += 1) registered.push((await registry.register(input)).partner.id);
    const listed: PartnerId[] = [];
    let after: string | null = null;
    do {
      const page: Awaited<ReturnType<PartnerRegistry["list"]>> = await registry.list({
        ...(after ? { after } : {}),
        limit: 2,
      });
      listed.push(...page.items.map((partner) => partner.id));
      after = page.next;
    } while (after !== null);
    expect(listed.slice(-5)).toEqual(registered);
    expect(new Set(listed).size).toBe(listed.length);
  });

  test("that nobody knows is not found by any method", async () => {
    const { registry } = service();
    const id: PartnerId = newId();
    expect(await registry.find(id)).toBeUndefined();
    const all = [
      registry.change(id, { name: "x" }),
      registry.setState(id, "paused"),
      registry.rotate(id, "apiKey", 1),
      registry.putTerminal(id, "T1", { mid: "M1" }),
      registry.terminals(id, { limit: 1 }),
    ];
    const refusals = await Promise.all(all.map(refusalOf));
    expect(refusals.map((refusal) => refusal.code)).toEqual(all.map(() => "not_found"));
  });
});

test("a change that waited in a circle with another is made once that one has ended", async () => {
  const { registry } = service();
  const { partner } = await registry.register(input);
  const rotated = await loseDeadlock(pool, () => registry.rotate(partner.id, "signingKey", 1), {
    table: "partners",
    locks: [
      `UPDATE partner_keys SET seals = seals WHERE partner_id = '${partner.id}'`,
      `SELECT FROM partners WHERE id = '${partner.id}' FOR UPDATE`,
    ],
  });
  expect(rotated).toMatchObject({ kind: "signingKey" });
});

describe("other instances", () => {
  test("are notified of each change of a partner and of its keys", async () => {
    const { registry } = service();
    const { partner } = await registry.register(input);
    const listener = await pool.connect();
    onTestFinished(() => listener.release(true));
    await listener.query("LISTEN paybell_partner");
    const told: (string | undefined)[] = [];
    const all = Promise.withResolvers<void>();
    listener.on("notification", ({ payload }) => {
      told.push(payload);
      if (told.length === 3) all.resolve();
    });
    await registry.change(partner.id, { maxInFlight: 3 });
    await registry.setState(partner.id, "paused");
    await registry.rotate(partner.id, "apiKey", 0);
    await all.promise;
    expect(told).toEqual([partner.id, partner.id, partner.id]);
  });
});

describe("a rotation", () => {
  test.each(["encryptionKey", "signingKey"] as const)(
    "of the %s leaves the old version in use until the overlap ends",
    async (kind) => {
      const { registry, directory } = service();
      const { partner } = await registry.register(input);
      const before = (await currentKeys(directory, partner.id))[kind];
      const rotated = await registry.rotate(partner.id, kind, 24);
      expect(rotated.activeFrom).toEqual(rotated.expiresOld);
      expect(rotated.activeFrom.getTime() - Date.now()).toBeGreaterThan(23 * 3_600_000);
      expect((await currentKeys(directory, partner.id))[kind]).toBe(before);
      await passHours(partner.id, 25);
      expect((await currentKeys(directory, partner.id))[kind]).toBe(rotated.id);
    },
  );

  test("without overlap takes over at once", async () => {
    const { registry, directory } = service();
    const { partner, secrets } = await registry.register(input);
    const rotated: Record<string, KeyId> = {};
    for (const kind of ["encryptionKey", "signingKey", "webhookSecret", "apiKey"] as const) {
      rotated[kind] = (await registry.rotate(partner.id, kind, 0)).id;
    }
    expect(await currentKeys(directory, partner.id)).toEqual({
      encryptionKey: rotated["encryptionKey"],
      signingKey: rotated["signingKey"],
      webhookSecret: [rotated["webhookSecret"]],
    });
    expect(await directory.findByApiKey(secrets.apiKey)).toBeUndefined();
  });

  test("of the webhook secret signs with both, the newest first, until the overlap ends", async () => {
    const { registry, directory } = service();
    const { partner } = await registry.register(input);
    const [old] = (await currentKeys(directory, partner.id)).webhookSecret;
    const { id } = await registry.rotate(partner.id, "webhookSecret", 1);
    expect((await currentKeys(directory, partner.id)).webhookSecret).toEqual([id, old]);
    await passHours(partner.id, 2);
    expect((await currentKeys(directory, partner.id)).webhookSecret).toEqual([id]);
  });

  test("of the API key keeps both valid until the overlap ends", async () => {
    const { registry, directory } = service();
    const { partner, secrets } = await registry.register(input);
    const { secret } = await registry.rotate(partner.id, "apiKey", 1);
    for (const key of [secrets.apiKey, secret])
      expect((await directory.findByApiKey(key))?.partner.id).toBe(partner.id);
    await passHours(partner.id, 2);
    await directory.invalidate(partner.id);
    expect(await directory.findByApiKey(secrets.apiKey)).toBeUndefined();
    expect((await directory.findByApiKey(secret))?.partner.id).toBe(partner.id);
  });

  test("of the API key seals the one again that a rotation has made which began later, and was first", async () => {
    const { registry } = service();
    const { partner } = await registry.register(input);
    const [first, later, last] = [newId<"key">(), newId<"key">(), newId<"key">()];
    const insert = `INSERT INTO partner_keys (partner_id, id, kind, material, active_from, expires_at)
      VALUES ($1, $2, 'apiKey', $3, now() + $4 * interval '1 minute', now() + $5 * interval '1 minute')`;
    await pool.query(insert, [partner.id, first, Buffer.from(first), -9, -1]);
    await pool.query(insert, [partner.id, later, Buffer.from(later), 1, null]);
    const sealed: string[] = [];
    const seals = {
      ...{ toStore: (hash: Buffer) => hash, isIntact: () => true },
      seal: async (_: unknown, { ids }: { readonly ids: readonly string[] }) => void sealed.push(...ids),
    };
    const key = { id: last, kind: "apiKey", material: Buffer.from(last) } as const;
    await postgresPartners(connections, seals as never).rotate(partner.id, key, 60, true);
    const main = partner.keys.find(({ kind }) => kind === "apiKey")?.id;
    expect(sealed.toSorted()).toEqual([main, later, last].toSorted());
  });

  test("during a rotation leaves exactly one version in use at any time", async () => {
    const { registry, directory } = service();
    const { partner } = await registry.register(input);
    const first = (await currentKeys(directory, partner.id)).encryptionKey;
    const second = await registry.rotate(partner.id, "encryptionKey", 10);
    const third = await registry.rotate(partner.id, "encryptionKey", 20);
    expect((await currentKeys(directory, partner.id)).encryptionKey).toBe(first);
    await passHours(partner.id, 11);
    expect((await currentKeys(directory, partner.id)).encryptionKey).toBe(second.id);
    await passHours(partner.id, 10);
    expect((await currentKeys(directory, partner.id)).encryptionKey).toBe(third.id);
  });

  test("that is urgent overtakes one that was planned", async () => {
    const { registry, directory } = service();
    const { partner } = await registry.register(input);
    await registry.rotate(partner.id, "signingKey", 10);
    const urgent = await registry.rotate(partner.id, "signingKey", 0);
    for (const hours of [0, 11, 30]) {
      await passHours(partner.id, hours);
      expect((await currentKeys(directory, partner.id)).signingKey).toBe(urgent.id);
    }
  });

  test("of an unknown key or for too long is refused", async () => {
    const { registry } = service();
    const { partner } = await registry.register(input);
    const refused = await refusalOf(registry.rotate(partner.id, "password" as RotatedKind, 721));
    expect(refused.fields.map(({ field }) => field)).toEqual(["key", "overlapHours"]);
    expect((await refusalOf(registry.rotate(partner.id, "apiKey", Number.NaN))).code).toBe("invalid_value");
  });
});

describe("terminals", () => {
  const terminal = {
    mid: "M1",
    merchantId: "M1",
    merchantName: "A shop",
    merchantAddress: "1 Street",
    deviceId: "D1",
    appName: "App",
    acquirer: "",
  };

  test("are registered, changed and listed by tid", async () => {
    const { registry } = service();
    const { partner } = await registry.register(input);
    for (const tid of ["T3", "T1", "T2"]) await registry.putTerminal(partner.id, tid, terminal);
    expect(await registry.putTerminal(partner.id, "T2", { mid: "M2" })).toMatchObject({
      tid: "T2",
      mid: "M2",
      merchantName: "",
    });
    const first = await registry.terminals(partner.id, { limit: 2 });
    expect(first.items).toEqual([{ tid: "T1", ...terminal }, expect.objectContaining({ tid: "T2", mid: "M2" })]);
    const rest = await registry.terminals(partner.id, { limit: 2, after: first.next ?? "" });
    expect(rest).toEqual({ items: [{ tid: "T3", ...terminal }], next: null });
  });

  test("keep their numbers when they are changed", async () => {
    const { registry } = service();
    const { partner } = await registry.register(input);
    await registry.putTerminal(partner.id, "T1", { ...terminal, mid: `N${partner.id.slice(-8)}` });
    await pool.query("UPDATE terminals SET trace_no = 41, batch_no = 7 WHERE partner_id = $1", [partner.id]);
    await registry.putTerminal(partner.id, "T1", { mid: `M${partner.id.slice(-8)}` });
    const { rows } = await pool.query("SELECT trace_no, batch_no FROM terminals WHERE partner_id = $1", [partner.id]);
    expect(rows).toEqual([{ trace_no: 41, batch_no: 7 }]);
  });

  test("with & in a signed field are refused, naming it", async () => {
    const { registry } = service();
    const { partner } = await registry.register(input);
    const refused = await refusalOf(registry.putTerminal(partner.id, "T1", { mid: "M&1" }));
    expect(refused).toMatchObject({ code: "delimiter_in_signed_field", fields: [{ field: "mid" }] });
  });

  test("with a full card number in any field but the deviceId are refused, and no error repeats it", async () => {
    const { registry } = service();
    const { partner } = await registry.register(input);
    const visa = "4111 1111 1111 1111";
    const bare = visa.replaceAll(" ", "");
    const given = { mid: bare, merchantId: visa, merchantName: visa, merchantAddress: `(${visa})`, appName: visa };
    const surprise = { [`note ${visa}`]: "x" };
    const refused = await refusalOf(registry.putTerminal(partner.id, bare, { ...given, ...surprise }));
    expect(refused.fields.map(({ field, code }) => `${field} ${code}`)).toEqual([
      ...["tid", "mid", "merchantId", "merchantName", "merchantAddress", "appName", "[a card number]"].map(
        (field) => `${field} card_number_in_clear`,
      ),
    ]);
    expect(JSON.stringify([refused.message, refused.fields])).not.toContain("1111");
    expect(await registry.putTerminal(partner.id, "T-device", { mid: "M1", deviceId: bare })).toMatchObject({
      deviceId: bare,
    });
  });
});

test("of two values that are sealed under one name the first is kept", async () => {
  for (const value of ["first", "second"]) {
    expect(await partners.storeSealed("of two", Buffer.from(value))).toEqual(Buffer.from("first"));
  }
});

test("a full card number in a partner's settings is refused, at the registration and later", async () => {
  const { registry } = service();
  const callBackUrl = "https://203.0.113.10/4111111111111111";
  const named = (refused: ServiceError) => refused.fields.map(({ field, code }) => `${field} ${code}`);
  const name = "4111-1111-1111-1111";
  expect(named(await refusalOf(registry.register({ ...input, name, callBackUrl })))).toEqual([
    "name card_number_in_clear",
    "callBackUrl card_number_in_clear",
  ]);
  const { partner } = await registry.register(input);
  expect(named(await refusalOf(registry.change(partner.id, { callBackUrl })))).toEqual([
    "callBackUrl card_number_in_clear",
  ]);
});

test.each<[Partial<PartnerInput>, string]>([
  [{ reports: { schemes: { NAPAS: "4111111111111111" } } }, "reports.schemes.NAPAS"],
  [{ reports: { schemes: { "4111111111111111": "NAPAS" } } }, "reports.schemes.[a card number]"],
  [{ reports: { schemes: { "4111 1111 1111 1111": "A&B" } } }, "reports.schemes.[a card number]"],
  [{ "a.4111111111111111": 1 } as object, "[a card number]"],
  [{ reports: { "4111111111111111": "x" } as object }, "reports.[a card number]"],
  [{ signing: { mode: "fields", card: ["4111111111111111"] } }, "signing.card[0]"],
  [{ signing: { mode: "fields", settlement: ["4111\u00011111\u00011111\u00011111"] } }, "signing.settlement[0]"],
  [{ callingAddresses: ["10.0.0.1", "4111111111111111"] }, "callingAddresses[1]"],
  [{ timeZone: "4111111111111111" }, "timeZone"],
  [{ transactionTypes: { "4111111111111111": "SALE" } as object }, "transactionTypes.[a card number]"],
])("a full card number anywhere in a partner's settings is refused: %j", async (patch, field) => {
  const { registry } = service();
  const { partner } = await registry.register(input);
  for (const refused of [
    await refusalOf(registry.change(partner.id, patch)),
    await refusalOf(registry.register({ ...input, ...patch })),
  ]) {
    expect(refused).toMatchObject({ code: "card_number_in_clear", fields: [{ field, code: "card_number_in_clear" }] });
    expect(refused.fields).toHaveLength(1);
    expect(JSON.stringify([refused.message, refused.fields])).not.toContain("1111");
  }
  expect((await registry.find(partner.id))?.settings).toEqual(partner.settings);
});

describe("the database", () => {
  test("knows its master key again, and no other", async () => {
    await requireFittingMasterKey(masterKey, partners);
    await requireFittingMasterKey(masterKey, partners);
    await expect(requireFittingMasterKey(MasterKey.generate(), partners)).rejects.toThrow(MasterKeyMismatch);
  });

  test("counts seals by blocks, and shows the count", async () => {
    const { registry, directory } = service();
    const { partner } = await registry.register(input);
    const { encryptionKey } = await currentKeys(directory, partner.id);
    const budget = new SealBudget(partners, () => undefined);
    await Promise.all(Array.from({ length: 100 }, () => budget.spend(partner.id, encryptionKey)));
    const record = await registry.find(partner.id);
    expect(record?.keys.map((key) => key.seals).filter((seals) => seals !== undefined)).toEqual([sealsReserved]);
    await expect(budget.spend(partner.id, newId())).rejects.toThrow(/no key version/);
  });

  test("gives every connection back after a refusal", async () => {
    const { registry } = service();
    const { partner } = await registry.register(input);
    for (let i = 0; i < 10; i += 1) await refusalOf(registry.change(partner.id, { name: "" }));
    expect(pool.waitingCount).toBe(0);
    expect(pool.idleCount).toBe(pool.totalCount);
  });
});

describe("the partners of the engine", () => {
  test("does not wait for connections for people, though all of them are held", async () => {
    const { registry, directory } = service();
    const { partner, secrets } = await registry.register(input);
    await registry.putTerminal(partner.id, "T-held", { mid: "M1", deviceId: "4111111111111111" });
    const held = await Promise.all(Array.from({ length: pool.options.max }, () => pool.connect()));
    onTestFinished(() => held.forEach((client) => void client.release()));
    const found = (await directory.findByApiKey(secrets.apiKey))?.partner;
    expect(found?.id).toBe(partner.id);
    await new SealBudget(partners, () => undefined).spend(partner.id, found?.keys.encryption.id ?? "");
    expect(await isRegisteredDevice(connections.homes, partner.id, "4111111111111111")).toBe(true);
  });

  test("is found along the keys, however many partners there are", async () => {
    const { registry, directory } = service();
    const { partner, secrets } = await registry.register(input);
    const others = 2_000;
    const owners = "INSERT INTO partners (id, state, settings) SELECT id, 'active', '{}' FROM others RETURNING id";
    await pool.query(
      `WITH others AS (SELECT gen_random_uuid() AS id FROM generate_series(1, $1)), owners AS (${owners})
       INSERT INTO partner_keys (partner_id, id, kind, material)
       SELECT o.id, gen_random_uuid(), kind, uuid_send(gen_random_uuid()) FROM others o,
         unnest('{apiKey,encryptionKey,signingKey,webhookSecret}'::text[]) AS kind`,
      [others],
    );
    onTestFinished(async () => {
      await pool.query("DELETE FROM partner_keys k USING partners p WHERE p.id = k.partner_id AND p.settings = '{}'");
      await pool.query("DELETE FROM partners WHERE settings = '{}'");
    });
    ofEngine.length = 0;
    const found = (await directory.findByApiKey(secrets.apiKey))?.partner;
    await new SealBudget(partners, () => undefined).spend(partner.id, found?.keys.encryption.id ?? "");
    expect(ofEngine.map(({ along }) => along.join(", "))).toEqual([
      "partner_keys_api_key × 1",
      "partners_pkey × 1, partner_keys_pkey × 1",
      "partners_pkey × 1, partner_keys_pkey × 1, partner_keys_pkey × 1, row_seals_pkey × 1",
      "partner_keys_pkey × 1",
    ]);
    // One partner: its row and its four keys, twice if both the keys and the change marker are read.
    expect(Math.max(...ofEngine.map(({ rowsTouched }) => rowsTouched))).toBe(9);
  });
});

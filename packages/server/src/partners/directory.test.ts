import { generateKeyPairSync } from "node:crypto";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import type { ServiceError } from "../errors.ts";
import { newId, type PartnerId } from "../ids.ts";
import { ageMaxMs, CachedPartners } from "./directory.ts";
import { apiKeyHash, newSecret } from "./keys.ts";
import { MasterKey } from "./master-key.ts";
import { completeSettings, defaultSettings } from "./settings/settings.ts";
import type { LoadedPartner, PartnerStates } from "./store.ts";

const masterKey = MasterKey.generate();

/** A database in memory whose answers can be held back or refused; it counts its questions. */
class States implements PartnerStates {
  readonly partners = new Map<PartnerId, LoadedPartner>();
  readonly asked = { fingerprints: 0, load: 0, partnersByApiKey: 0 };
  failing = false;
  #held: Promise<void> | undefined;

  hold(): () => void {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#held = promise;
    return () => {
      this.#held = undefined;
      resolve();
    };
  }

  async fingerprints(ids: readonly PartnerId[]) {
    const found = ids.flatMap((id) => this.partners.get(id) ?? []).map((row) => [row.id, row.fingerprint] as const);
    await this.#answer("fingerprints");
    return new Map(found);
  }

  async load(ids: readonly PartnerId[]) {
    const found = ids.flatMap((id) => this.partners.get(id) ?? []);
    await this.#answer("load");
    return found;
  }

  async partnersByApiKey(hashes: readonly Buffer[]) {
    await this.#answer("partnersByApiKey");
    const owners = new Map<string, PartnerId>();
    for (const { id, keys } of this.partners.values()) {
      for (const { kind, material } of keys) {
        if (kind === "apiKey" && hashes.some((hash) => hash.equals(material))) owners.set(material.toString("hex"), id);
      }
    }
    return owners;
  }

  async #answer(question: keyof States["asked"]): Promise<void> {
    this.asked[question] += 1;
    if (this.failing) throw new Error("no database");
    await this.#held;
  }
}

function scene() {
  const states = new States();
  let nowMs = 0;
  const errors: unknown[] = [];
  const directory = new CachedPartners({
    store: states,
    masterKey,
    defaults: defaultSettings,
    clock: { nowMs: () => nowMs, monotonicMs: () => nowMs },
    onError: (error) => errors.push(error),
  });
  onTestFinished(() => directory.stop());
  return {
    states,
    directory,
    errors,
    pass: (ms: number) => {
      nowMs += ms;
    },
    add: (name = "A partner") => {
      const { row, apiKey } = partnerRow(newId(), name);
      states.partners.set(row.id, row);
      return { id: row.id, apiKey };
    },
    rename: (id: PartnerId, name: string) => {
      const row = states.partners.get(id);
      if (row === undefined) throw new Error("no such partner");
      states.partners.set(id, { ...row, fingerprint: name, settings: { ...row.settings, name } });
    },
  };
}

function partnerRow(id: PartnerId, name: string): { row: LoadedPartner; apiKey: string } {
  const apiKey = newSecret("apiKey").text;
  const sealed = (["encryptionKey", "signingKey", "webhookSecret"] as const).map((kind) => {
    const keyId = newId<"key">();
    return { id: keyId, kind, material: masterKey.seal(newSecret(kind).raw, { partnerId: id, keyId, kind }) };
  });
  const keys = [...sealed, { id: newId<"key">(), kind: "apiKey" as const, material: apiKeyHash(apiKey) }];
  const settings = completeSettings({ name, callbackAddresses: ["203.0.113.0/24"], callingAddresses: [] });
  return { row: { id, fingerprint: name, state: "active", settings, keys, pauses: [] }, apiKey };
}

describe("the directory", () => {
  test("reads a partner once, and gives the same snapshot while nothing changed", async () => {
    const { directory, states, add, pass } = scene();
    const { id } = add();
    expect(directory.cached(id)).toBeUndefined();
    const partner = await directory.find(id);
    expect(partner).toMatchObject({ id, state: "active", settings: { name: "A partner" } });
    expect(directory.cached(id)).toBe(partner);
    pass(ageMaxMs + 1);
    expect(directory.cached(id)).toBeUndefined();
    expect(await directory.find(id)).toBe(partner);
    expect(states.asked).toEqual({ fingerprints: 2, load: 1, partnersByApiKey: 0 });
  });

  test("knows no partner that is not there", async () => {
    expect(await scene().directory.find(newId())).toBeUndefined();
  });

  test("shares one query among all who ask at once", async () => {
    const { directory, states, add } = scene();
    const ids = Array.from({ length: 50 }, (_, i) => add(`Partner ${i}`).id);
    // The first query is on its way with the first one; the others share the second.
    const found = await Promise.all([...ids, ...ids].map((id) => directory.find(id)));
    expect(found.map((partner) => partner?.id)).toEqual([...ids, ...ids]);
    expect(states.asked.fingerprints).toBe(2);
  });

  test("counts a snapshot's age from before the query was sent", async () => {
    const { directory, states, add, pass } = scene();
    const { id } = add();
    // It is read, and then confirmed unchanged.
    for (let reads = 0; reads < 2; reads += 1) {
      const release = states.hold();
      const found = directory.find(id);
      pass(ageMaxMs);
      release();
      await found;
      expect(directory.cached(id)).toBeDefined();
      pass(1);
      expect(directory.cached(id)).toBeUndefined();
    }
  });

  test("refuses when no fresh enough state can be had", async () => {
    const { directory, states, add, pass } = scene();
    const { id } = add();
    await directory.find(id);
    states.failing = true;
    expect(directory.cached(id)).toBeDefined();
    pass(ageMaxMs + 1);
    const refused = await directory.find(id).catch((error: ServiceError) => error);
    expect(refused).toMatchObject({ code: "unavailable", retryAfterS: 2 });
    states.failing = false;
    expect(await directory.find(id)).toBeDefined();
  });

  test("refuses when the database does not answer in time", async () => {
    vi.useFakeTimers();
    onTestFinished(() => void vi.useRealTimers());
    const { directory, states, add } = scene();
    const { id, apiKey } = add();
    const release = states.hold();
    const asked = Promise.allSettled([directory.find(id), directory.findByApiKey(apiKey)]);
    await vi.advanceTimersByTimeAsync(ageMaxMs);
    const unavailable = { status: "rejected", reason: { code: "unavailable" } };
    expect(await asked).toMatchObject([unavailable, unavailable]);
    release();
  });

  test("sees a change once it is notified of it, and never mistakes an earlier reading for it", async () => {
    const { directory, states, add, rename } = scene();
    const { id } = add();
    const release = states.hold();
    const early = directory.find(id);
    rename(id, "Renamed");
    const told = directory.invalidate(id);
    release();
    await early;
    await told;
    expect(directory.cached(id)?.settings.name).toBe("Renamed");
  });

  test("makes a key's KeyObject once, and goes on with it when other things change", async () => {
    const { directory, add, rename } = scene();
    const { id } = add();
    const before = await directory.find(id);
    rename(id, "Renamed");
    await directory.invalidate(id);
    const after = directory.cached(id);
    expect(after).not.toBe(before);
    expect(after?.keys.encryption).toBe(before?.keys.encryption);
    expect(after?.keys.webhook[0]).toBe(before?.keys.webhook[0]);
  });

  test("presents the client certificate that replaced another", async () => {
    const { directory, states, add } = scene();
    const { id } = add();
    const row = states.partners.get(id) as LoadedPartner;
    const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
    const key = privateKey.export({ type: "pkcs8", format: "pem" });
    const presented = async (certificate: string) => {
      const place = { partnerId: id, keyId: newId<"key">(), kind: "callbackKey" } as const;
      const material = masterKey.seal(Buffer.from(JSON.stringify({ certificate, key })), place);
      const keys = [...row.keys, { id: place.keyId, kind: place.kind, material }];
      states.partners.set(id, { ...row, fingerprint: certificate, keys });
      await directory.invalidate(id);
      return (await directory.find(id))?.keys.client?.certificate;
    };
    expect([await presented("first"), await presented("second")]).toEqual(["first", "second"]);
  });

  test("forgets a partner that is gone", async () => {
    const { directory, states, add } = scene();
    const { id } = add();
    await directory.find(id);
    states.partners.delete(id);
    await directory.invalidate(id);
    expect(directory.cached(id)).toBeUndefined();
    expect(await directory.find(id)).toBeUndefined();
  });

  test("keeps what is in use fresh by one query every two seconds, and asks nothing while nothing is", async () => {
    vi.useFakeTimers();
    onTestFinished(() => void vi.useRealTimers());
    const { directory, states, add, pass } = scene();
    directory.start();
    await vi.advanceTimersByTimeAsync(10_000);
    expect(states.asked.fingerprints).toBe(0);
    const ids = [add("one").id, add("two").id];
    await Promise.all(ids.map((id) => directory.find(id)));
    const asked = states.asked.fingerprints;
    for (let i = 0; i < 5; i += 1) {
      pass(2_000);
      await vi.advanceTimersByTimeAsync(2_000);
    }
    expect(states.asked.fingerprints).toBe(asked + 5);
    expect(ids.map((id) => directory.cached(id)?.id)).toEqual(ids);
    directory.stop();
    await vi.advanceTimersByTimeAsync(10_000);
    expect(states.asked.fingerprints).toBe(asked + 5);
  });

  test("refreshes no partner that was not asked for in a minute", async () => {
    const { directory, add, pass } = scene();
    const [used, unused] = [add("used").id, add("unused").id];
    await directory.find(unused);
    pass(40_000);
    await directory.find(used);
    pass(30_000);
    await directory.find(used);
    pass(-30_000);
    // Back at a time when both snapshots were fresh: only one is still there.
    expect(directory.cached(used)).toBeDefined();
    expect(directory.cached(unused)).toBeUndefined();
  });

  test("serves the others when one partner's keys cannot be opened", async () => {
    const { directory, states, errors, add } = scene();
    const [good, bad] = [add("good").id, add("bad").id];
    const row = states.partners.get(bad);
    const keys = row?.keys.map((key) => ({ ...key, material: Buffer.alloc(61, 1) })) ?? [];
    if (row) states.partners.set(bad, { ...row, keys });
    const [found, failed] = await Promise.allSettled([directory.find(good), directory.find(bad)]);
    expect(found).toMatchObject({ status: "fulfilled", value: { id: good } });
    expect(failed).toMatchObject({ status: "rejected" });
    expect(errors).toHaveLength(1);
    const readable = async () => Promise.all([good, bad].map(async (id) => (await directory.findReadable(id))?.id));
    expect(await readable()).toEqual([good, undefined]);
    states.failing = true;
    await expect(directory.findReadable(bad)).rejects.toMatchObject({ code: "unavailable" });
  });
});

describe("a watch of the directory", () => {
  function watched() {
    const made = scene();
    const seen: (readonly [PartnerId, string | undefined])[] = [];
    made.directory.watch((id) => seen.push([id, made.directory.cached(id)?.settings.name]));
    return { ...made, news: () => seen.splice(0) };
  }

  test("names a partner that arrives, changes or is removed, when the change is visible; and no other", async () => {
    const { directory, states, add, rename, pass, news } = watched();
    const [id, other] = [add("one").id, add("other").id];
    await directory.find(id);
    await directory.find(other);
    expect(news()).toEqual([
      [id, "one"],
      [other, "other"],
    ]);
    pass(ageMaxMs);
    await directory.invalidate(id);
    expect(news()).toEqual([]);
    rename(id, "renamed");
    await directory.invalidate(id);
    expect(news()).toEqual([[id, "renamed"]]);
    states.partners.delete(id);
    await directory.invalidate(id);
    expect(news()).toEqual([[id, undefined]]);
  });

  test("names a partner that was too old, and is confirmed unchanged", async () => {
    const { directory, states, add, pass, news } = watched();
    const { id } = add("one");
    await directory.find(id);
    news();
    states.failing = true;
    pass(ageMaxMs + 1);
    await expect(directory.find(id)).rejects.toMatchObject({ code: "unavailable" });
    expect(news()).toEqual([]);
    states.failing = false;
    await directory.find(id);
    expect(news()).toEqual([[id, "one"]]);
    expect(states.asked.load).toBe(1);
  });
});

describe("an API key", () => {
  test("leads to its partner, and is looked up once", async () => {
    const { directory, states, add } = scene();
    const { id, apiKey } = add();
    expect((await directory.findByApiKey(apiKey))?.partner.id).toBe(id);
    expect((await directory.findByApiKey(apiKey))?.partner.id).toBe(id);
    expect(states.asked.partnersByApiKey).toBe(1);
  });

  test("that is unknown is asked for once in two seconds", async () => {
    const { directory, states, pass } = scene();
    const { text } = newSecret("apiKey");
    for (let i = 0; i < 5; i += 1) expect(await directory.findByApiKey(text)).toBeUndefined();
    expect(states.asked.partnersByApiKey).toBe(1);
    pass(2_001);
    expect(await directory.findByApiKey(text)).toBeUndefined();
    expect(states.asked.partnersByApiKey).toBe(2);
  });

  test("that cannot be one is not asked for at all", async () => {
    const { directory, states } = scene();
    expect(await directory.findByApiKey("' OR 1=1")).toBeUndefined();
    expect(states.asked.partnersByApiKey).toBe(0);
  });

  test("that expired leads nowhere", async () => {
    const { directory, states, add } = scene();
    const { id, apiKey } = add();
    expect(await directory.findByApiKey(apiKey)).toBeDefined();
    const row = states.partners.get(id);
    if (row)
      states.partners.set(id, { ...row, fingerprint: "2", keys: row.keys.filter((key) => key.kind !== "apiKey") });
    await directory.invalidate(id);
    expect(await directory.findByApiKey(apiKey)).toBeUndefined();
  });

  test("is refused as unavailable while nobody can be asked", async () => {
    const { directory, states, add } = scene();
    const { apiKey } = add();
    states.failing = true;
    await expect(directory.findByApiKey(apiKey)).rejects.toMatchObject({ code: "unavailable" });
  });

  test("of many unknown ones shares its query with the others, up to a bound", async () => {
    const { directory, states } = scene();
    const release = states.hold();
    const tries = Array.from({ length: 1_200 }, () => directory.findByApiKey(newSecret("apiKey").text));
    release();
    const results = await Promise.allSettled(tries);
    expect(states.asked.partnersByApiKey).toBe(2);
    expect(results.filter((result) => result.status === "rejected")).toHaveLength(199);
  });
});

import { createCipheriv } from "node:crypto";
import { afterEach, expect, test, vi } from "vitest";
import { systemClock } from "../../clock.ts";
import { Till } from "../till.fixture.ts";
import { Iso8583Acquirer } from "./iso8583.ts";
import { encrypted, kek, keyMessage, registered, wireUnder, withExchange } from "./key-exchange.fixture.ts";
import { checkValueOf, KeyExchange, KeyOpener, type MacKeyStore } from "./key-exchange.ts";
import { answerTo, FakeHost } from "./link/fake-host.fixture.ts";
import type { LinkEvent } from "./link/link.ts";
import { isoMessage } from "./message/codec.fixture.ts";
import type { IsoMessage } from "./message/codec.ts";
import { aesCmac, Mac, MacKeys } from "./message/mac.ts";
import type { KeyExchangeProfile } from "./profile/schema.ts";

const [second, third] = [Buffer.alloc(16, 2), Buffer.alloc(16, 3)];
const patient = { timeoutMs: 600_000, onLateAnswer: () => expect.fail("no late answer is due") };

const closing: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

const request = { mti: "0800", fields: { "7": "{transmission}", "11": "{traceNo}", "70": "161" } };
/** A host that uses a key of the test's choice; messages whose MAC does not match are collected separately. */
async function hosted(change: object, macKeyStore?: MacKeyStore, connections = 1) {
  const host = await FakeHost.listen();
  closing.push(() => host.close());
  host.wire = wireUnder(registered);
  const events: LinkEvent[] = [];
  const profile = withExchange(change);
  const open = () => {
    const acquirer = new Iso8583Acquirer({
      profile: { ...profile, network: { ...profile.network, connections } },
      hosts: [{ host: "127.0.0.1", port: host.port }],
      macKey: registered,
      keyEncryptionKey: kek,
      macKeyStore,
      clock: systemClock,
      timings: { backOffMs: () => 1 },
      onEvent: (event) => events.push(event),
    });
    closing.push(() => acquirer.close());
    return acquirer;
  };
  const acquirer = open();
  const happens = (kind: LinkEvent["kind"], times = 1) =>
    expect.poll(() => events.filter((event) => event.kind === kind)).toHaveLength(times);
  const sends = (content: string) => host.send(keyMessage(content));
  return { host, acquirer, events, open, happens, sends };
}

const sold = async (acquirer: Iso8583Acquirer) =>
  (await acquirer.ask(new Till().sale("tok_approve"), patient)).responseCode;

test("the host sends a new key: it is answered under the old one, and all after it is under the new", async () => {
  const { host, acquirer, happens, sends } = await hosted({});
  expect(await sold(acquirer)).toBe("00");
  let asked: IsoMessage | undefined;
  host.answer = (message) => {
    asked = message;
    return undefined;
  };
  const inFlight = sold(acquirer);
  await host.hears("0200", 2);
  sends(encrypted(second));
  await happens("key");
  await host.hears("0810");
  expect(host.heard.at(-1)?.fields.get(39)).toBe("00");
  // A request under the old key is answered under it.
  host.send(answerTo(asked as IsoMessage, "00"));
  expect(await inFlight).toBe("00");
  host.answer = (message) => answerTo(message, "00");
  host.wire = wireUnder(second);
  expect(await sold(acquirer)).toBe("00");
  expect(acquirer.health().detail).toMatch(/ s, under the MAC key that came at \d{4}-\S+Z$/);
});

test("a key that cannot be decrypted is refused, and the previous one stays", async () => {
  const { acquirer, host, happens, sends } = await hosted({});
  expect(await sold(acquirer)).toBe("00");
  sends(`${encrypted(second).slice(0, 32)}000000`);
  await happens("key_refused");
  await host.hears("0810");
  expect(host.heard.at(-1)?.fields.get(39)).toBe("96");
  sends("no key at all");
  await happens("key_refused", 2);
  expect(await sold(acquirer)).toBe("00");
  const detail = /under the registered MAC key; the key of \S+Z was refused: the message contains no key$/;
  expect(acquirer.health().detail).toMatch(detail);
  sends(encrypted(second));
  await happens("key");
  expect(acquirer.health().detail).not.toContain("refused");
});

test("a key that cannot be kept is refused", async () => {
  const kept = new KeptKey();
  kept.keep = () => Promise.reject(new Error("the database is away"));
  const { host, acquirer, sends } = await hosted({ belongsTo: "acquirer" }, kept);
  expect(await sold(acquirer)).toBe("00");
  sends(encrypted(second));
  await host.hears("0810");
  expect(host.heard.at(-1)?.fields.get(39)).toBe("96");
  expect(await sold(acquirer)).toBe("00");
});

/** As one instance sees what all share. */
class KeptKey implements MacKeyStore {
  readonly shared: { key?: Buffer | undefined };
  #before: Buffer | undefined;
  #written: Buffer | undefined;

  constructor(shared: { key?: Buffer } = {}) {
    this.shared = shared;
  }

  taking = Promise.resolve();
  read = async () => this.shared.key;
  onKept: (key: Buffer) => Promise<void> = async () => undefined;

  keep = async (key: Buffer): Promise<void> => {
    this.#before = this.shared.key;
    this.#written = this.shared.key = Buffer.from(key);
    await this.onKept(key);
  };

  putBack = async (): Promise<void> => {
    if (this.shared.key === this.#written) this.shared.key = this.#before ?? registered;
  };
}

const exchangeOf = (keys: MacKeys, kept: MacKeyStore) =>
  new KeyExchange({
    profile: withExchange({ belongsTo: "acquirer" }).mac?.keyExchange as KeyExchangeProfile,
    ...{ opener: new KeyOpener("aes-ecb", "aes-cmac", kek), keys, registered, kept, clock: systemClock },
  });

test("a key stays in use, although a read of the database that began before it came has another", async () => {
  const reads: ((key: Buffer) => void)[] = [];
  const keys = new MacKeys({ algorithm: "aes-cmac", padding: "zeros" }, registered, systemClock);
  const kept = new KeptKey();
  kept.read = () => new Promise((resolve) => void reads.push(resolve));
  const exchange = exchangeOf(keys, kept);
  const reading = [exchange.reread(), exchange.begin()];
  await exchange.take(keyMessage(encrypted(second)), () => true);
  kept.read = async () => kept.shared.key;
  for (const resolve of reads) resolve(third);
  await Promise.all(reading);
  expect(keys.of(Buffer.alloc(8))).toBe(new Mac("aes-cmac", second).of(Buffer.alloc(8)));
});

test("a key whose connection ended before the host got its answer is not taken up", async () => {
  const keeping = Promise.withResolvers<void>();
  const kept = new KeptKey();
  kept.onKept = () => keeping.promise;
  const { host, acquirer, events, happens, sends } = await hosted({ belongsTo: "acquirer" }, kept);
  expect(await sold(acquirer)).toBe("00");
  sends(encrypted(second));
  await expect.poll(() => events.filter(({ kind }) => kind === "received").length).toBe(3);
  host.breakConnections();
  await happens("down");
  keeping.resolve();
  await happens("key_refused");
  await happens("up", 2);
  expect(kept.shared.key).toEqual(registered);
  expect(acquirer.health().detail).toMatch(
    /; the key of \S+Z was refused: its connection ended before it was answered$/,
  );
  expect(await sold(acquirer)).toBe("00");
});

test("of keys that come one right after the other, the last one stays, however long each takes to be kept", async () => {
  const first = Promise.withResolvers<void>();
  const kept: Buffer[] = [];
  const keys = new MacKeys({ algorithm: "aes-cmac", padding: "zeros" }, registered, systemClock);
  const store = new KeptKey();
  store.onKept = async (key) => {
    if (key.equals(second)) await first.promise;
    kept.push(key);
  };
  const exchange = exchangeOf(keys, store);
  const taking = [second, third].map((key) => exchange.take(keyMessage(encrypted(key)), () => true));
  setImmediate(first.resolve);
  await Promise.all(taking);
  expect(kept).toEqual([second, third]);
  expect(keys.of(Buffer.alloc(8))).toBe(new Mac("aes-cmac", third).of(Buffer.alloc(8)));
});

test("a key that is not taken up stays out of use, although a connection that began meanwhile has read it", async () => {
  const [puttingBack, begun] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const keys = new MacKeys({ algorithm: "aes-cmac", padding: "zeros" }, registered, systemClock);
  const kept = new KeptKey();
  const { putBack } = kept;
  kept.putBack = async () => {
    puttingBack.resolve();
    await begun.promise;
    await putBack();
  };
  const exchange = exchangeOf(keys, kept);
  const taking = exchange.take(keyMessage(encrypted(second)), () => false);
  await puttingBack.promise;
  const beginning = exchange.begin();
  begun.resolve();
  await expect(taking).rejects.toThrow("its connection ended before it was answered");
  await beginning;
  expect(kept.shared.key).toEqual(registered);
  expect(keys.inUse).toEqual(registered);
});

const away = () => Promise.reject(new Error("the database is away"));

test.each<[string, Buffer | undefined, (kept: KeptKey) => unknown, Buffer]>([
  ["by the registered one, if none was stored", undefined, () => undefined, registered],
  ["by the one that was stored, also if this process has not read that yet", third, () => undefined, third],
  ["by none, if another instance took up the same before", second, () => undefined, second],
  [
    "by none, if another instance took one up meanwhile",
    third,
    ({ shared }) => (shared.key = Buffer.from(second)),
    second,
  ],
  ["by the one before, if it is not known whether this one was stored", third, away, third],
])("a key that the host does not use is replaced %s", async (_, before, meanwhile, after) => {
  const kept = new KeptKey(before && { key: before });
  kept.onKept = async () => void (await meanwhile(kept));
  const keys = new MacKeys({ algorithm: "aes-cmac", padding: "zeros" }, registered, systemClock);
  const exchange = exchangeOf(keys, kept);
  await expect(exchange.take(keyMessage(encrypted(second)), () => false)).rejects.toThrow(/ended before|is away/);
  expect(keys.inUse).toEqual(registered);
  await exchange.reread();
  expect([kept.shared.key, keys.inUse]).toEqual([after, after]);
});

test("a key that was asked for, which the host uses, is not put back if it is not known whether it was stored", async () => {
  const kept = new KeptKey();
  kept.onKept = away;
  const keys = new MacKeys({ algorithm: "aes-cmac", padding: "zeros" }, registered, systemClock);
  const exchange = exchangeOf(keys, kept);
  await expect(exchange.ask(async () => keyMessage(encrypted(second)))).rejects.toThrow("is away");
  await exchange.reread();
  expect([kept.shared.key, keys.inUse]).toEqual([second, second]);
});

test("a connection that begins while a key fails to be taken up signs on under the stored one", async () => {
  const kept = new KeptKey({ key: third });
  kept.keep = away;
  const keys = new MacKeys({ algorithm: "aes-cmac", padding: "zeros" }, registered, systemClock);
  const exchange = exchangeOf(keys, kept);
  const taken = exchange.take(keyMessage(encrypted(second)), () => true);
  await Promise.all([exchange.begin(), expect(taken).rejects.toThrow("is away")]);
  expect(keys.inUse).toEqual(third);
});

test("a key is approved under the one before, although it was kept, and read, before the host had its answer", async () => {
  const [keeping, going] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const kept = new KeptKey();
  const keys = new MacKeys({ algorithm: "aes-cmac", padding: "zeros" }, registered, systemClock);
  kept.onKept = async () => {
    keeping.resolve();
    await going.promise;
  };
  const exchange = exchangeOf(keys, kept);
  let approvedUnder: Buffer | undefined;
  const taken = exchange.take(keyMessage(encrypted(second)), () => {
    approvedUnder = keys.inUse;
    return true;
  });
  await keeping.promise;
  const reading = [exchange.reread(), exchange.begin()];
  going.resolve();
  await Promise.all([taken, ...reading]);
  expect([approvedUnder, keys.inUse]).toEqual([registered, second]);
});

test("a key is requested after the sign-on, and again when it is due", async () => {
  const { host, acquirer, events } = await hosted({ request, requestEveryMs: 1_000 });
  let answered = 0;
  let withThird: number | undefined;
  host.keyContent = encrypted(second);
  host.onKey = () => {
    const isThird = host.keyContent === encrypted(third);
    host.wire = wireUnder(isThird ? third : second);
    answered += 1;
    if (isThird) withThird ??= answered;
  };
  // The host gives the same key for as long as a Sale may be under way: it would not understand one under the last key.
  const taken = () => events.filter(({ kind }) => kind === "key").length;
  await expect.poll(taken).toBeGreaterThan(0);
  expect(await sold(acquirer)).toBe("00");
  host.keyContent = encrypted(third);
  await expect.poll(() => withThird !== undefined && taken() >= withThird).toBe(true);
  expect(await sold(acquirer)).toBe("00");
});

test("an answer under a key that was asked for is read once that is kept, whatever is asked for after it", async () => {
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
  closing.push(async () => vi.useRealTimers());
  const [keeping, reached] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const macKeyStore = new KeptKey();
  macKeyStore.onKept = async (key) => {
    if (key.equals(registered)) return;
    reached.resolve();
    // The key that the other connection was given takes longer than this test.
    await (key.equals(second) ? keeping.promise : new Promise(() => undefined));
  };
  const change = { request, requestEveryMs: 60_000, belongsTo: "acquirer" };
  const { host, acquirer, events, happens } = await hosted(change, macKeyStore, 2);
  host.keyContent = encrypted(registered);
  await happens("up", 2);
  host.keyContent = encrypted(second);
  host.answer = (sale) => {
    host.onKey = () => {
      host.onKey = () => undefined;
      host.keyContent = encrypted(third);
      host.wire = wireUnder(second);
      host.send(answerTo(sale, "00"));
      // By the answers to this one it is known that the one before has been looked at.
      host.wire = wireUnder(registered);
      host.send(isoMessage("0800", { 7: "0131093001", 11: "000008", 70: "301" }));
    };
    // Both connections ask.
    vi.advanceTimersByTime(60_000);
    return undefined;
  };
  const inFlight = sold(acquirer);
  await Promise.all([reached.promise, host.hears("0810", 2)]);
  expect(events.filter(({ kind }) => kind === "ignored")).toEqual([]);
  host.wire = wireUnder(second);
  keeping.resolve();
  expect(await inFlight).toBe("00");
});

test("a host with several connections is asked for one key after the other: it uses the last one", async () => {
  const asked: ((key: Buffer) => void)[] = [];
  const keys = new MacKeys({ algorithm: "aes-cmac", padding: "zeros" }, registered, systemClock);
  const exchange = exchangeOf(keys, new KeptKey());
  const ask = () =>
    exchange.ask(async () => {
      const key = await new Promise<Buffer>((resolve) => asked.push(resolve));
      return keyMessage(encrypted(key));
    });
  const asking = [ask(), ask()];
  await expect.poll(() => asked.length).toBeGreaterThan(0);
  expect(asked).toHaveLength(1);
  asked[0]?.(second);
  await asking[0];
  await expect.poll(() => asked).toHaveLength(2);
  asked[1]?.(third);
  await asking[1];
  expect(keys.inUse).toEqual(third);
});

test("a connection's key ends with it; an acquirer's is kept, for the next start and other instances", async () => {
  const ofConnection = await hosted({});
  expect(await sold(ofConnection.acquirer)).toBe("00");
  ofConnection.sends(encrypted(second));
  await ofConnection.happens("key");
  // The answer is under the old key.
  await ofConnection.host.hears("0810");
  ofConnection.host.wire = wireUnder(registered);
  ofConnection.host.breakConnections();
  await ofConnection.happens("up", 2);
  expect(await sold(ofConnection.acquirer)).toBe("00");

  const macKeyStore = new KeptKey();
  const { host, acquirer, open, happens, sends } = await hosted({ belongsTo: "acquirer" }, macKeyStore);
  expect(await sold(acquirer)).toBe("00");
  const other = open();
  expect(await sold(other)).toBe("00");
  const [toFirst] = host.sockets;
  for (const socket of host.sockets) if (socket !== toFirst) host.leaves(socket);
  sends(encrypted(second));
  await happens("key");
  await host.hears("0810");
  expect(macKeyStore.shared.key).toEqual(second);
  host.wire = wireUnder(second);
  expect(await sold(acquirer)).toBe("00");
  await other.reread();
  expect(await sold(other)).toBe("00");
  expect(other.health().detail).toContain("the MAC key that another instance took up at ");
  const later = open();
  expect(await sold(later)).toBe("00");
  expect(later.health().detail).toContain("the MAC key that was kept");
});

test.each([
  ["a connection's key ends with its site, and the other site gives one of its own", "connection"],
  ["an acquirer's key is used at the other site too, before that one gives another", "acquirer"],
] as const)("at a failover, %s", async (_, belongsTo) => {
  const macKeyStore = new KeptKey();
  const [site, otherSite] = [await FakeHost.listen(), await FakeHost.listen()];
  closing.push(() => otherSite.close());
  for (const [host, before, own] of [
    [site, registered, second],
    [otherSite, belongsTo === "connection" ? registered : second, third],
  ] as const) {
    host.wire = wireUnder(before);
    host.keyContent = encrypted(own);
    host.onKey = () => {
      host.wire = wireUnder(own);
    };
  }
  const sites = [site, otherSite].map(({ port }) => ({ host: "127.0.0.1", port }));
  const keys: string[] = [];
  const acquirer = new Iso8583Acquirer({
    profile: withExchange({ request, belongsTo }),
    hosts: sites,
    ...{ macKey: registered, keyEncryptionKey: kek, macKeyStore, clock: systemClock },
    timings: { backOffMs: () => 1 },
    onEvent: ({ kind, host }) => void (kind === "key" && keys.push(host)),
  });
  closing.push(() => acquirer.close());
  await expect.poll(() => keys).toHaveLength(1);
  expect(await sold(acquirer)).toBe("00");
  await site.close();
  await expect.poll(() => keys).toHaveLength(2);
  expect(await sold(acquirer)).toBe("00");
  expect(keys).toEqual(sites.map(({ host, port }) => `${host}:${port}`));
  expect(otherSite.heard.filter(({ mti }) => mti === "0200")).toHaveLength(1);
});

test("the check value of an AES key is the CMAC of zeros", () => {
  expect(checkValueOf("aes-cmac", second)).toEqual(aesCmac(Buffer.alloc(16), second));
});

const hex = (text: string) => Buffer.from(text, "hex");

test("AES key wrap is that of RFC 3394 (4.1)", () => {
  const opener = new KeyOpener("aes-kw", "aes-cmac", hex("000102030405060708090A0B0C0D0E0F"));
  const wrapped = hex("1FA68B0A8112B447AEF34BD8FB5A7B829D3E862371D2CFE5");
  expect(opener.open(wrapped, null).toString("hex")).toBe("00112233445566778899aabbccddeeff");
  wrapped[3] = 0;
  expect(() => opener.open(wrapped, null)).toThrow("the key cannot be decrypted");
});

test("a key opens under its key-encryption key, if the check value is its own", () => {
  const kek = hex("0123456789abcdeffedcba9876543210");
  const key = hex("11223344556677889900aabbccddeeff");
  const cipher = createCipheriv("des-ede3", Buffer.concat([kek, kek.subarray(0, 8)]), null).setAutoPadding(false);
  const encrypted = cipher.update(key);
  const opener = new KeyOpener("tdes-ecb", "x9.19", kek);
  const checkValue = checkValueOf("x9.19", key).subarray(0, 3).toString("hex");
  expect(opener.open(encrypted, checkValue)).toEqual(key);
  expect(opener.open(encrypted, null)).toEqual(key);
  // A host that should send one, and does not, has proved nothing.
  expect(() => opener.open(encrypted, "")).toThrow("the message contains no check value");
  expect(() => opener.open(encrypted, "000000")).toThrow("the check value does not match the key");
  expect(() => opener.open(encrypted.subarray(1), null)).toThrow("the key cannot be decrypted");
  expect(() => new KeyOpener("tdes-ecb", "x9.19", Buffer.alloc(8))).toThrow("has 16 or 24 bytes");
  const aes = createCipheriv("aes-128-ecb", kek, null).setAutoPadding(false);
  expect(new KeyOpener("aes-ecb", "aes-cmac", kek).open(aes.update(key), null)).toEqual(key);
});

test("a key that no MAC can have is neither kept nor approved: every connection would begin with it, and fail", async () => {
  const kept = new KeptKey();
  const keys = new MacKeys({ algorithm: "x9.19", padding: "zeros" }, registered, systemClock);
  const exchange = new KeyExchange({
    profile: {
      ...(withExchange({ belongsTo: "acquirer" }).mac?.keyExchange as KeyExchangeProfile),
      ...{ key: { field: 48, from: 0, characters: null }, checkValue: null },
    },
    opener: new KeyOpener("tdes-ecb", "x9.19", kek),
    ...{ keys, registered, kept, clock: systemClock },
  });
  const approve = () => expect.fail("it cannot be used");
  const taken = exchange.take(keyMessage("A1".repeat(24)), approve);
  await expect(taken).rejects.toThrow("a key for X9.19 has 16 bytes");
  expect(kept.shared.key).toBeUndefined();
});

test("the check value of a DES key is that of zeros, as banks print it", () => {
  // Documents give 08D7B4 for this key, and 82E136 for the one of the test above.
  expect(checkValueOf("x9.19", hex("0123456789ABCDEFFEDCBA9876543210")).subarray(0, 3).toString("hex")).toBe("08d7b4");
});

import { createSecretKey } from "node:crypto";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, expect, onTestFinished, test, vi } from "vitest";
import { connectionsTo } from "../../../../test/support/connections.ts";
import { createDatabase, withAdmin } from "../../../../test/support/database.ts";
import { NoAnswer, NotSent } from "../acquirer/acquirer.ts";
import { profile } from "../acquirer/iso8583/example-profile.fixture.ts";
import { encrypted, kek, keyMessage, registered, withExchange } from "../acquirer/iso8583/key-exchange.fixture.ts";
import { KeyExchange, KeyOpener, type MacKeyStore } from "../acquirer/iso8583/key-exchange.ts";
import { FakeHost } from "../acquirer/iso8583/link/fake-host.fixture.ts";
import { MacKeys } from "../acquirer/iso8583/message/mac.ts";
import type { KeyExchangeProfile } from "../acquirer/iso8583/profile/schema.ts";
import { Till } from "../acquirer/till.fixture.ts";
import { systemClock } from "../clock.ts";
import { readConfig } from "../config/config.ts";
import { MasterKey } from "../partners/master-key.ts";
import type { NewEvent } from "../telemetry/events.ts";
import { createLog } from "../telemetry/log.ts";
import {
  type HostOptions,
  iso8583Options,
  openAcquirers,
  simulator,
  withAcquirerLinks,
} from "./configured-acquirers.ts";
import type { Infrastructure } from "./infrastructure.ts";

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

const options = { timeoutMs: 1_000, onLateAnswer: () => expect.fail("no late answer is due") };

test("without a setting it answers at once", async () => {
  const acquirer = simulator(readConfig({}));
  expect(await acquirer.ask(new Till().sale("tok_approve"), options)).toMatchObject({ responseCode: "00" });
});

test("its latency is that of the settings, for every answer", async () => {
  const acquirer = simulator(readConfig({ PAYBELL_SIMULATOR_LATENCY_MS: "300" }));
  const answered = vi.fn();
  const asked = acquirer.ask(new Till().logon(), options).then(answered);
  await vi.advanceTimersByTimeAsync(299);
  expect(answered).not.toHaveBeenCalled();
  await vi.advanceTimersByTimeAsync(1);
  await asked;
  expect(answered).toHaveBeenCalledWith(expect.objectContaining({ responseCode: "00" }));
});

test("a late answer is as late as the settings say", async () => {
  const acquirer = simulator(readConfig({ PAYBELL_SIMULATOR_LATE_BY_MS: "50" }));
  const onLateAnswer = vi.fn();
  const asked = expect(acquirer.ask(new Till().sale("tok_late"), { ...options, onLateAnswer })).rejects.toThrow(
    NoAnswer,
  );
  await vi.advanceTimersByTimeAsync(options.timeoutMs + 49);
  await asked;
  expect(onLateAnswer).not.toHaveBeenCalled();
  await vi.advanceTimersByTimeAsync(1);
  expect(onLateAnswer).toHaveBeenCalledWith(expect.objectContaining({ responseCode: "00" }));
});

test.each([
  ["not_sent", NotSent],
  ["no_answer", NoAnswer],
])("an outage %s is there from the start, for every message", async (outage, reason) => {
  const acquirer = simulator(readConfig({ PAYBELL_SIMULATOR_OUTAGE: outage }));
  const till = new Till();
  const sale = till.sale("tok_approve");
  for (const message of [sale, till.reversal(sale), till.logon()]) {
    await expect(acquirer.ask(message, options)).rejects.toThrow(reason);
  }
});

test.each([
  ["PAYBELL_ACQUIRER_PROFILE", {}],
  ["PAYBELL_ACQUIRER_CA_FILE", {}],
  ["PAYBELL_ACQUIRER_CERTIFICATE_FILE", { PAYBELL_ACQUIRER_KEY_FILE: fileURLToPath(import.meta.url) }],
])("the error of a file that cannot be read names its setting: %s", async (name, others) => {
  vi.useRealTimers();
  const profile = fileURLToPath(new URL("../../../../docs/operator/acquirer-profile.json", import.meta.url));
  const env = { PAYBELL_ACQUIRER: "iso8583", PAYBELL_ACQUIRER_HOSTS: "localhost:1", PAYBELL_ACQUIRER_TLS: "on" };
  const config = readConfig({ PAYBELL_ACQUIRER_PROFILE: profile, ...env, ...others, [name]: "missing.file" });
  await expect(iso8583Options(config)).rejects.toThrow(`${name} (missing.file) does not exist`);
});

test("a MAC key that came over the link is used until another one is registered, or it is put back", async () => {
  vi.useRealTimers();
  const database = await createDatabase();
  onTestFinished(() => database.drop());
  const [one, other, came, next] = [1, 2, 3, 4].map((byte) => Buffer.alloc(16, byte)) as [
    Buffer,
    Buffer,
    Buffer,
    Buffer,
  ];
  await withAcquirerLinks(database.serviceUrl, MasterKey.generate(), async ({ withShared }) => {
    const keysWith = (macKey = one) => withShared("bank", { macKey } as HostOptions).macKeyStore as MacKeyStore;
    const [keys, others] = [keysWith(), keysWith()];
    await keys.keep(came);
    expect(await others.read()).toEqual(came);
    expect(await keysWith(other).read()).toBeUndefined();
    await keys.putBack();
    expect(await others.read()).toEqual(one);
    await others.keep(came);
    await keys.keep(next);
    await keys.putBack();
    expect(await others.read()).toEqual(came);
    // Of two instances that keep the same one, the first does not take it from the second.
    await keys.keep(next);
    await others.keep(next);
    await keys.putBack();
    expect(await others.read()).toEqual(next);
  });
});

test.each([
  ["which does not take it up either", false],
  ["which takes it up", true],
])("a MAC key of a link that has ended is put back before the one of the next link, %s", async (_, isTaken) => {
  vi.useRealTimers();
  const database = await createDatabase();
  onTestFinished(() => database.drop());
  await withAcquirerLinks(database.serviceUrl, MasterKey.generate(), async ({ withShared }) => {
    const [came, next] = [Buffer.alloc(16, 2), Buffer.alloc(16, 3)] as const;
    const kept = withShared("bank", { macKey: registered } as HostOptions).macKeyStore as MacKeyStore;
    const link = () =>
      new KeyExchange({
        profile: withExchange({ belongsTo: "acquirer" }).mac?.keyExchange as KeyExchangeProfile,
        opener: new KeyOpener("aes-ecb", "aes-cmac", kek),
        keys: new MacKeys({ algorithm: "aes-cmac", padding: "zeros" }, registered, systemClock),
        ...{ registered, kept, clock: systemClock },
      });
    await withAdmin(database.url, async (client) => {
      await client.query("BEGIN");
      await client.query("SELECT pg_advisory_xact_lock(hashtext('paybell acquirer'), hashtext('bank'))");
      const taking = [
        link().take(keyMessage(encrypted(came)), () => false),
        link().take(keyMessage(encrypted(next)), () => isTaken),
      ];
      // The view of activity stays as it is within a transaction, and that of locks has those of all databases.
      const ofThis = "(SELECT oid FROM pg_database WHERE datname = current_database())";
      const waiting = `SELECT FROM pg_locks WHERE locktype = 'advisory' AND NOT granted AND database = ${ofThis}`;
      await expect.poll(async () => (await client.query(waiting)).rowCount).toBeGreaterThan(0);
      await client.query("COMMIT");
      await Promise.allSettled(taking);
    });
    expect(await kept.read()).toEqual(isTaken ? next : registered);
  });
});

test("a MAC key that could not be put back while the database was away is put back before any link reads it", async () => {
  vi.useRealTimers();
  const database = await createDatabase();
  onTestFinished(() => database.drop());
  const rename = (from: string, to: string) =>
    withAdmin(database.url, (client) => client.query(`ALTER TABLE ${from} RENAME TO ${to}`));
  await withAcquirerLinks(database.serviceUrl, MasterKey.generate(), async ({ withShared }) => {
    const [one, came, next] = [1, 2, 3].map((byte) => Buffer.alloc(16, byte)) as [Buffer, Buffer, Buffer];
    const keysOf = () => withShared("bank", { macKey: one } as HostOptions).macKeyStore as MacKeyStore;
    const [keys, others] = [keysOf(), keysOf()];
    const notPutBack = async (key: Buffer) => {
      await keys.keep(key);
      await rename("sealed_values", "away");
      await expect(keys.putBack()).rejects.toThrow("sealed_values");
      await rename("away", "sealed_values");
    };
    await notPutBack(came);
    expect([await keys.read(), await others.read()]).toEqual([one, one]);
    await notPutBack(came);
    await keys.keep(next);
    await keys.putBack();
    expect(await others.read()).toEqual(one);
  });
});

test("a MAC key that came over the link of the settings ends for good once the service starts with another one", async () => {
  vi.useRealTimers();
  const created = await createDatabase();
  const database = connectionsTo(created.serviceUrl, 2);
  onTestFinished(async () => {
    await database.close();
    await created.drop();
  });
  const [one, other, came] = [1, 2, 3].map((byte) => Buffer.alloc(16, byte)) as [Buffer, Buffer, Buffer];
  const masterKey = MasterKey.generate();
  const start = async (macKey: Buffer) => {
    const unused = { log: {}, alerts: {}, metrics: { macKeys: { inc: () => undefined } }, warn: () => () => undefined };
    const { acquirers } = await openAcquirers(
      { ...unused, database, config: readConfig({}) } as unknown as Infrastructure,
      {
        ofSettings: { profile, hosts: [], macKey, clock: systemClock },
        ...{ masterKey, sessionKey: createSecretKey(Buffer.alloc(32)), lease: { current: () => undefined } },
      },
    );
    await acquirers.stop();
  };
  await withAcquirerLinks(created.serviceUrl, masterKey, async ({ withShared }) => {
    const keys = withShared("", { macKey: one } as HostOptions).macKeyStore as MacKeyStore;
    await keys.keep(came);
    await start(one);
    expect(await keys.read()).toEqual(came);
    await start(other);
    await start(one);
    expect(await keys.read()).toBeUndefined();
  });
});

test.each([
  [true, "00"],
  [false, "96"],
])("an advice of a host is approved only if its event is durable: %s, %s", async (isDurable, code) => {
  vi.useRealTimers();
  const created = await createDatabase();
  const database = connectionsTo(created.serviceUrl, 2);
  const host = await FakeHost.listen();
  onTestFinished(async () => {
    await host.close();
    await database.close();
    await created.drop();
  });
  const recorded: NewEvent[] = [];
  const isRecorded = async (event: NewEvent) => {
    recorded.push(event);
    return isDurable;
  };
  const { acquirers } = await openAcquirers(
    {
      ...{ database, config: readConfig({}), log: createLog("silent", { write: () => undefined }) },
      ...{ alerts: { isRecorded }, metrics: { macKeys: { inc: () => undefined } }, warn: () => () => undefined },
    } as unknown as Infrastructure,
    {
      ofSettings: { profile, hosts: [{ host: "127.0.0.1", port: host.port }], clock: systemClock },
      masterKey: MasterKey.generate(),
      ...{ sessionKey: createSecretKey(Buffer.alloc(32)), lease: { current: () => undefined } },
    },
  );
  await host.hears("0800");
  const fields: [number, string][] = [
    [4, "000000001500"],
    [7, "1122061112"],
    [11, "000777"],
  ];
  host.send({ mti: "0420", fields: new Map(fields) });
  await host.hears("0430");
  expect(host.heard.find(({ mti }) => mti === "0430")?.fields.get(39)).toBe(code);
  const detail = { acquirer: "default", mti: "0420", amount: "000000001500", traceNo: "000777" };
  expect(recorded).toMatchObject([{ kind: "acquirer_advice", detail }]);
  await acquirers.stop();
});

import { createCipheriv } from "node:crypto";
import { afterEach, expect, test } from "vitest";
import { systemClock } from "../../clock.ts";
import { Till } from "../till.fixture.ts";
import { profile } from "./example-profile.fixture.ts";
import { Iso8583Acquirer } from "./iso8583.ts";
import type { KeptKey } from "./key-exchange.ts";
import { answerTo, FakeHost } from "./link/fake-host.fixture.ts";
import type { LinkEvent } from "./link/link.ts";
import { Wire } from "./link/wire.ts";
import { layoutOf } from "./mapping.ts";
import { Codec, type IsoMessage } from "./message/codec.ts";
import { checkValueOf } from "./message/key-opener.ts";
import { aesCmac, Mac } from "./message/mac.ts";
import type { Profile } from "./profile/schema.ts";

const [registered, second, third] = [1, 2, 3].map((byte) => Buffer.alloc(16, byte)) as [Buffer, Buffer, Buffer];
const kek = Buffer.alloc(16, 9);
const patient = { timeoutMs: 10_000, onLateAnswer: () => expect.fail("no late answer is due") };

const closing: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

const request = { mti: "0800", fields: { "7": "{transmission}", "11": "{traceNo}", "70": "161" } };
const withExchange = (change: object): Profile => ({
  ...profile,
  mac: {
    algorithm: "aes-cmac",
    networkMessages: true,
    keyExchange: {
      encryption: "aes-ecb",
      brings: { field: 70, values: ["101"] },
      key: { field: 48, from: 0, characters: 32 },
      checkValue: { field: 48, from: 32, characters: 6 },
      request: null,
      requestEveryMs: null,
      belongsTo: "connection",
      ...change,
    },
  },
});

function encrypted(key: Buffer): string {
  const cipher = createCipheriv("aes-128-ecb", kek, null).setAutoPadding(false);
  const checkValue = checkValueOf("aes-cmac", key).subarray(0, 3);
  return Buffer.concat([cipher.update(key), checkValue])
    .toString("hex")
    .toUpperCase();
}

function wireUnder(key: Buffer): Wire {
  return new Wire({
    codec: new Codec(layoutOf(profile)),
    framing: profile.framing,
    authentication: { mac: new Mac("aes-cmac", key), encoding: "binary", networkMessages: true },
  });
}

/** A host that reads and writes under a key of its own choice; every message that does not fit is kept apart. */
async function hosted(change: object, keptKey?: KeptKey) {
  const host = await FakeHost.listen();
  closing.push(() => host.close());
  host.wire = wireUnder(registered);
  const events: LinkEvent[] = [];
  const open = () => {
    const acquirer = new Iso8583Acquirer({
      profile: withExchange(change),
      hosts: [{ host: "127.0.0.1", port: host.port }],
      macKey: registered,
      keyEncryptionKey: kek,
      keptKey,
      clock: systemClock,
      timings: { backOffMs: [1, 20] },
      onEvent: (event) => events.push(event),
    });
    closing.push(() => acquirer.close());
    return acquirer;
  };
  const acquirer = open();
  const happens = (kind: LinkEvent["kind"], times = 1) =>
    expect.poll(() => events.filter((event) => event.kind === kind), { timeout: 10_000 }).toHaveLength(times);
  const sends = (content: string) =>
    host.send({
      mti: "0800",
      fields: new Map([
        [7, "0131093001"],
        [11, "000007"],
        [48, content],
        [70, "101"],
      ]),
    });
  return { host, acquirer, open, happens, sends };
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
});

test("a key that does not open is refused, and the one before stays", async () => {
  const { acquirer, host, happens, sends } = await hosted({});
  expect(await sold(acquirer)).toBe("00");
  sends(`${encrypted(second).slice(0, 32)}000000`);
  await happens("key_refused");
  await host.hears("0810");
  expect(host.heard.at(-1)?.fields.get(39)).toBe("96");
  sends("no key at all");
  await happens("key_refused", 2);
  expect(await sold(acquirer)).toBe("00");
});

test("a key is asked for after the sign-on, and again when its time has come", async () => {
  const { host, acquirer, happens } = await hosted({ request, requestEveryMs: 1_000 });
  host.keyContent = encrypted(second);
  host.onKey = () => {
    host.wire = wireUnder(host.keyContent === encrypted(second) ? second : third);
    host.keyContent = encrypted(third);
  };
  await happens("key");
  expect(await sold(acquirer)).toBe("00");
  await happens("key", 2);
  expect(await sold(acquirer)).toBe("00");
});

test("a connection's key ends with it; an acquirer's is kept, for the next start and other instances", async () => {
  const ofConnection = await hosted({});
  expect(await sold(ofConnection.acquirer)).toBe("00");
  ofConnection.sends(encrypted(second));
  await ofConnection.happens("key");
  ofConnection.host.wire = wireUnder(registered);
  ofConnection.host.breakConnections();
  await ofConnection.happens("up", 2);
  expect(await sold(ofConnection.acquirer)).toBe("00");

  let kept: Buffer | undefined;
  const keptKey: KeptKey = {
    read: async () => kept,
    keep: async (key) => {
      kept = key;
    },
  };
  const { host, acquirer, open, happens, sends } = await hosted({ belongsTo: "acquirer" }, keptKey);
  expect(await sold(acquirer)).toBe("00");
  const other = open();
  expect(await sold(other)).toBe("00");
  const [toFirst] = host.sockets;
  for (const socket of host.sockets) if (socket !== toFirst) host.leaves(socket);
  sends(encrypted(second));
  await happens("key");
  expect(kept).toEqual(second);
  host.wire = wireUnder(second);
  expect(await sold(acquirer)).toBe("00");
  await other.rereadKey();
  expect(await sold(other)).toBe("00");
  const later = open();
  expect(await sold(later)).toBe("00");
});

test("the check value of an AES key is the CMAC of zeros", () => {
  expect(checkValueOf("aes-cmac", second)).toEqual(aesCmac(Buffer.alloc(16), second));
});

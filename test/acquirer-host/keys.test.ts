import { createCipheriv } from "node:crypto";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { checkValueOf } from "../../packages/server/src/acquirer/iso8583/key-exchange.ts";
import type { KeyExchangeProfile, Profile } from "../../packages/server/src/acquirer/iso8583/profile/schema.ts";
import { Till } from "../../packages/server/src/acquirer/till.fixture.ts";
import { ascii, connected, profile, profile93, usualMac } from "./acquirer.fixture.ts";
import { type AcquirerHost, needsHost, startHost } from "./host.ts";

const needed = needsHost();
const patient = { timeoutMs: 600_000, onLateAnswer: () => expect.fail("no late answer is due") };

const macKey = Buffer.from("0123456789ABCDEFFEDCBA9876543210", "hex");
const kek = Buffer.from("11223344556677889900AABBCCDDEEFF", "hex");
const newKey = Buffer.from("A1B2C3D4E5F60718293A4B5C6D7E8F90", "hex");

const withKeys = (of: Profile, brings: KeyExchangeProfile["brings"], keyField: number): Profile => ({
  ...of,
  mac: {
    ...usualMac,
    algorithm: "x9.19",
    keyExchange: {
      encryption: "tdes-ecb",
      brings,
      key: { field: keyField, from: 0, characters: 32 },
      checkValue: { field: keyField, from: 32, characters: 6 },
      request: null,
      requestEveryMs: null,
      belongsTo: "acquirer",
    },
  },
});

const bytes96 = { format: "b...999", encoding: { bytes: "binary" } } as const;
const hosts = [
  {
    standard: "1987",
    encoding: "bcd",
    keyed: withKeys(profile, { field: 70, values: ["101", "161"] }, 48),
  },
  {
    standard: "1993",
    encoding: "ascii93",
    // jPOS writes a variable number of bytes as they are, also among characters.
    keyed: withKeys({ ...profile93, encoding: ascii, fields: { "96": bytes96 } }, { field: 24, values: ["811"] }, 96),
  },
] as const;

function sent(key: Buffer): string {
  const cipher = createCipheriv("des-ede3", Buffer.concat([kek, kek.subarray(0, 8)]), null).setAutoPadding(false);
  return Buffer.concat([cipher.update(key), checkValueOf("x9.19", key).subarray(0, 3)])
    .toString("hex")
    .toUpperCase();
}

describe.each(hosts)("a host on jPOS of ISO 8583:$standard that sends keys", needed, ({ encoding, keyed }) => {
  let host: AcquirerHost;
  beforeAll(async () => {
    host = await startHost({ encoding, macKey: macKey.toString("hex") });
  });
  afterAll(() => host.stop());

  test("changes the key while a Sale is in flight, and a key with a wrong check value is refused", async () => {
    const keys: string[] = [];
    const acquirer = await connected([host.port], {
      profile: keyed,
      macKey,
      keyEncryptionKey: kek,
      onEvent: ({ kind }) => void (kind.startsWith("key") && keys.push(kind)),
    });
    try {
      const till = new Till();
      expect((await acquirer.ask(till.sale("tok_approve"), patient)).responseCode).toBe("00");
      const late = acquirer.ask(till.sale("tok_late"), patient);
      await host.order(`key ${sent(newKey)} ${newKey.toString("hex")}`);
      await expect.poll(() => keys).toEqual(["key"]);
      expect((await late).responseCode).toBe("00");
      expect((await acquirer.ask(till.sale("tok_approve"), patient)).responseCode).toBe("00");
      await host.order(`key ${sent(newKey).slice(0, 32)}000000 ${macKey.toString("hex")}`);
      await expect.poll(() => keys).toEqual(["key", "key_refused"]);
      expect((await acquirer.ask(till.sale("tok_approve"), patient)).responseCode).toBe("00");
    } finally {
      await acquirer.close();
    }
  });
});

import { createCipheriv } from "node:crypto";
import { profile, usualMac } from "./example-profile.fixture.ts";
import { checkValueOf } from "./key-exchange.ts";
import { Wire } from "./link/wire.ts";
import { layoutOf } from "./mapping.ts";
import { isoMessage } from "./message/codec.fixture.ts";
import { Codec, type IsoMessage } from "./message/codec.ts";
import { Mac } from "./message/mac.ts";
import type { Profile } from "./profile/schema.ts";

/** The MAC key with which an acquirer is registered. */
export const registered = Buffer.alloc(16, 1);
/** The key-encryption key. */
export const kek = Buffer.alloc(16, 9);

/** A profile whose host sends new keys of the MACs. */
export const withExchange = (change: object): Profile => ({
  ...profile,
  mac: {
    ...usualMac,
    algorithm: "aes-cmac",
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

/** A new key, under the key-encryption key and with its check value, as field 48 brings it. */
export function encrypted(key: Buffer): string {
  const cipher = createCipheriv("aes-128-ecb", kek, null).setAutoPadding(false);
  const checkValue = checkValueOf("aes-cmac", key).subarray(0, 3);
  return Buffer.concat([cipher.update(key), checkValue])
    .toString("hex")
    .toUpperCase();
}

export function wireUnder(key: Buffer): Wire {
  return new Wire({
    codec: new Codec(layoutOf(profile)),
    framing: profile.framing,
    authentication: { ...usualMac, mac: new Mac("aes-cmac", key) },
  });
}

/** The host's message with a new key. */
export function keyMessage(content: string): IsoMessage {
  return isoMessage("0800", { 7: "0131093001", 11: "000007", 48: content, 70: "101" });
}

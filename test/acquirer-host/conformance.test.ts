import { afterAll, beforeAll, describe, test } from "vitest";
import { acquirerConformance } from "../../packages/server/src/acquirer/conformance.ts";
import type { Profile } from "../../packages/server/src/acquirer/iso8583/profile/schema.ts";
import { ascii, connected, profile, profile93, tokens, usualMac } from "./acquirer.fixture.ts";
import { type AcquirerHost, type AcquirerHostOptions, needsHost, startHost } from "./host.ts";

const needed = needsHost();

const macKey = "0123456789ABCDEFFEDCBA9876543210";
const inAscii: Profile = { ...profile, encoding: ascii };
const ebcdic: Profile = {
  ...profile,
  encoding: {
    mti: "ebcdic",
    bitmap: "hex-ebcdic",
    lengths: "ebcdic",
    text: "ebcdic",
    digits: "ebcdic",
    tracks: "ebcdic",
    bytes: "hex-ebcdic",
    oddDigits: { fixed: "left", variable: "left" },
  },
};
/** jPOS pads each odd number of digits behind it. */
const bcd93: Profile = {
  ...profile93,
  encoding: { ...profile93.encoding, oddDigits: { fixed: "right", variable: "right" } },
};
const withMac = (of: Profile): Profile => ({
  ...of,
  mac: { ...usualMac, algorithm: "x9.19", keyExchange: null },
});

const links: readonly { name: string; host: AcquirerHostOptions; profile: Profile; macKey?: Buffer }[] = [
  { name: "in BCD", host: { encoding: "bcd" }, profile },
  { name: "in ASCII", host: { encoding: "ascii" }, profile: inAscii },
  { name: "in EBCDIC", host: { encoding: "ebcdic" }, profile: ebcdic },
  { name: "of ISO 8583:1993 in BCD", host: { encoding: "bcd93" }, profile: bcd93 },
  {
    name: "of ISO 8583:1993 in ASCII with MACs",
    host: { encoding: "ascii93", macKey },
    profile: withMac({ ...profile93, encoding: ascii }),
    macKey: Buffer.from(macKey, "hex"),
  },
  {
    name: "in BCD with MACs",
    host: { encoding: "bcd", macKey },
    profile: withMac(profile),
    macKey: Buffer.from(macKey, "hex"),
  },
  {
    name: "in ASCII with MACs",
    host: { encoding: "ascii", macKey },
    profile: withMac(inAscii),
    macKey: Buffer.from(macKey, "hex"),
  },
];

describe.each(links)("the link to a host on jPOS, $name: it", needed, (link) => {
  let host: AcquirerHost;
  beforeAll(async () => {
    host = await startHost(link.host);
  });
  afterAll(() => host.stop());

  acquirerConformance(test, {
    open: async () => {
      await host.order("forget");
      return connected([host.port], { profile: link.profile, macKey: link.macKey });
    },
    tokens,
  });
});

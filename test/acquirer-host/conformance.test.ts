import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { acquirerConformance } from "../../packages/server/src/acquirer/conformance.ts";
import type { Profile } from "../../packages/server/src/acquirer/iso8583/profile/schema.ts";
import { connected, profile, tokens } from "./acquirer.fixture.ts";
import { type AcquirerHost, type AcquirerHostOptions, prepareHost, startHost } from "./host.ts";

const unavailable = prepareHost();

const macKey = "0123456789ABCDEFFEDCBA9876543210";
const ascii: Profile = {
  ...profile,
  encoding: {
    mti: "ascii",
    bitmap: "hex",
    lengths: "ascii",
    digits: "ascii",
    tracks: "ascii",
    bytes: "hex",
    oddDigits: { fixed: "left", variable: "left" },
  },
};
const withMac = (of: Profile): Profile => ({
  ...of,
  mac: { algorithm: "x9.19", networkMessages: true, keyExchange: null },
});

const links: readonly { name: string; host: AcquirerHostOptions; profile: Profile; macKey?: Buffer }[] = [
  { name: "in BCD", host: { encoding: "bcd" }, profile },
  { name: "in ASCII", host: { encoding: "ascii" }, profile: ascii },
  {
    name: "in BCD with MACs",
    host: { encoding: "bcd", macKey },
    profile: withMac(profile),
    macKey: Buffer.from(macKey, "hex"),
  },
  {
    name: "in ASCII with MACs",
    host: { encoding: "ascii", macKey },
    profile: withMac(ascii),
    macKey: Buffer.from(macKey, "hex"),
  },
];

// Left out without a JDK and Maven, which fetch and run the host: the line above the tests says which is missing.
describe.skipIf(unavailable !== undefined).each(links)("the link to a host on jPOS, $name: it", (link) => {
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

test("the tests of the link to a host run here, or a skipped test says why not", ({ skip }) => {
  // The machine lacks what runs the host.
  skip(unavailable !== undefined, `not run: ${unavailable}`);
  expect(unavailable).toBeUndefined();
});

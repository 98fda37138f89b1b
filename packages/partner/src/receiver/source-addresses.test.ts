import { randomBytes } from "node:crypto";
import { BlockList, isIP } from "node:net";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { IpnRefused, type ReceiverOptions, receiver } from "../index.ts";
import { testDelivery } from "../testing.ts";
import { addressList, isFrom } from "./source-addresses.ts";

const holds = (blocks: readonly string[], address: string) => isFrom(addressList("list", blocks), [], address, "");

describe("an address list", () => {
  it("contains addresses and CIDR blocks of both families, however they are written", () => {
    const list = ["203.0.113.7", "198.51.100.0/24", "2001:db8::1", "2001:db8:1::/48"];
    const inside = [
      "203.0.113.7",
      "::ffff:203.0.113.7",
      "::ffff:cb00:7107",
      "198.51.100.255",
      "::FFFF:198.51.100.9",
      "2001:db8::1",
      "2001:0DB8:0:0:0:0:0:1",
      "2001:db8:1:ffff::1",
      "2001:db8::1%eth0",
    ];
    const outside = ["203.0.113.8", "198.51.101.0", "2001:db8::2", "2001:db8:2::", "::203.0.113.7", "", "unknown"];
    expect(inside.filter((address) => !holds(list, address))).toEqual([]);
    expect(outside.filter((address) => holds(list, address))).toEqual([]);
    expect(holds(["::ffff:10.0.0.0/104"], "10.9.8.7")).toBe(true);
    expect(holds(["0.0.0.0/0"], "2001:db8::1")).toBe(false);
  });

  it.each([
    "203.0.113",
    "203.0.113.256",
    "203.0.113.07",
    "203.0.113.7/33",
    "203.0.113.7/",
    "203.0.113.7/24/24",
    "2001:db8::1::2",
    "2001:db8:1:2:3:4:5",
    "2001:db8::/129",
    "1:2:3:4:5:6:7:8::",
    "12345::",
    "paybell.example",
    "",
  ])("takes no %s", (entry) => {
    expect(() => addressList("list", [entry])).toThrow(/list\[0\] is not an IP address/);
  });

  it("agrees with node:net", () => {
    const v4 = fc.ipV4();
    const v6 = fc.ipV6();
    const family = (address: string) => (isIP(address) === 4 ? "ipv4" : "ipv6");
    const pair = fc.oneof(
      fc.tuple(v4, v4, fc.integer({ min: 0, max: 32 })),
      fc.tuple(v6, v6, fc.integer({ min: 0, max: 128 })),
      fc.tuple(v4, v4, fc.integer({ min: 0, max: 3 })),
    );
    fc.assert(
      fc.property(pair, ([block, address, bits]) => {
        const theirs = new BlockList();
        theirs.addSubnet(block, bits, family(block));
        expect(holds([`${block}/${bits}`], address)).toBe(theirs.check(address, family(address)));
        expect(holds([`${block}/${bits}`], block)).toBe(true);
      }),
    );
  });
});

describe("X-Forwarded-For", () => {
  const sources = addressList("sourceAddresses", ["192.0.2.1"]);
  const proxies = addressList("trustedProxies", ["10.0.0.0/8", "2001:db8::/32"]);
  const from = (remote: string, forwarded: string) => isFrom(sources, proxies, remote, forwarded);

  it("is read from its end, as long as a trusted proxy wrote the entry", () => {
    expect(from("10.0.0.1", "192.0.2.1")).toBe(true);
    expect(from("10.0.0.1", "203.0.113.9, 192.0.2.1, 10.0.0.2")).toBe(true);
    expect(from("10.0.0.1", "192.0.2.1:4711, 10.0.0.2:80, [2001:db8::5]:443")).toBe(true);
    expect(from("::ffff:10.0.0.1", "::ffff:192.0.2.1")).toBe(true);
  });

  it("is ignored from other senders, and before an entry that an untrusted one wrote", () => {
    expect(from("203.0.113.9", "192.0.2.1")).toBe(false);
    expect(from("10.0.0.1", "192.0.2.1, 203.0.113.9")).toBe(false);
    expect(from("10.0.0.1", "192.0.2.1, nonsense")).toBe(false);
    expect(from("10.0.0.1", "")).toBe(false);
    expect(from("192.0.2.1", "203.0.113.9")).toBe(true);
  });
});

describe("a receiver with source addresses", () => {
  const key = () => randomBytes(32).toString("base64");
  const options: ReceiverOptions = {
    encryptionKey: key(),
    signingKey: key(),
    webhookSecret: `whsec_${key()}`,
    sourceAddresses: ["192.0.2.0/24"],
    trustedProxies: ["127.0.0.1"],
  };
  const { body, headers } = testDelivery(options, { kind: "card" });

  it("opens IPNs from them, and refuses others like anything else", () => {
    const { open } = receiver(options);
    expect(open(body, headers, "192.0.2.44").kind).toBe("card");
    expect(open(body, { ...headers, "x-forwarded-for": "192.0.2.44" }, "127.0.0.1").kind).toBe("card");
    // A function platform passes Paybell's headers as they were sent, beside its own.
    expect(open(body, { ...headers, "X-Forwarded-For": "192.0.2.44" }, "127.0.0.1").kind).toBe("card");
    // As node:http and functions pass a header that was sent twice.
    const twice = (...entries: string[]) => open(body, { ...headers, "x-forwarded-for": entries }, "127.0.0.1");
    expect(twice("198.51.100.1", "192.0.2.44").kind).toBe("card");
    expect(() => twice("192.0.2.44", "198.51.100.1")).toThrow(IpnRefused);
    for (const address of ["198.51.100.1", "127.0.0.1", undefined])
      expect(() => open(body, headers, address)).toThrow(new IpnRefused("signature"));
  });
});

import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { AddressBlocks, networkOf, parseBlock } from "./address-blocks.ts";

const everything = ["0.0.0.0/0", "::/0"];

describe("an address that is never called", () => {
  test.each([
    ["127.0.0.1", "loopback"],
    ["127.255.255.254", "loopback"],
    ["::1", "loopback"],
    ["::ffff:127.0.0.1", "loopback"],
    ["::127.0.0.1", "loopback"],
    ["64:ff9b::7f00:1", "loopback"],
    ["64:ff9b:1::7f00:1", "loopback"],
    ["2002:7f00:1::", "loopback"],
    ["0.0.0.0", "unspecified"],
    ["0.1.2.3", "unspecified"],
    ["::", "unspecified"],
    ["169.254.169.254", "link-local"],
    ["::ffff:169.254.169.254", "link-local"],
    ["64:ff9b::a9fe:a9fe", "link-local"],
    ["::ffff:0:127.0.0.1", "loopback"],
    ["::ffff:0:169.254.169.254", "link-local"],
    ["2002:a9fe:a9fe::", "link-local"],
    // Teredo keeps the client's IPv4 address inverted.
    ["2001:0:1:2:3:4:5601:5601", "link-local"],
    ["fe80::1", "link-local"],
    ["fe80::1%eth0", "link-local"],
    ["224.0.0.1", "multicast"],
    ["ff02::1", "multicast"],
    ["255.255.255.255", "broadcast"],
    ["168.63.129.16", "metadata"],
    ["100.100.100.200", "metadata"],
    ["fd00:ec2::254", "metadata"],
    // Addresses that lead somewhere else than they seem to: a relay, a tunnel, a segment of somebody's network.
    ["192.88.99.1", "6to4 relay"],
    ["5f00::1", "segment"],
    ["2001:db8::5efe:a01:203", "ISATAP"],
    ["2001:db8::200:5efe:198.51.100.7", "ISATAP"],
  ])("%s (%s), even when the list holds everything and names it", (address, kind) => {
    const named = /%|^::(ffff:)?\d+\./.test(address) ? [] : [address];
    const refusal = new AddressBlocks([...everything, ...named]).refusal(address, false);
    expect(refusal).toContain(address);
    expect(refusal).toContain(kind);
    expect(refusal).toContain("never called");
  });
});

describe("an address of a private network", () => {
  test.each([
    ["10.1.2.3", "10.1.0.0/16"],
    ["172.16.0.1", "172.16.0.0/12"],
    ["192.168.1.1", "192.168.1.1"],
    ["100.64.0.1", "100.64.0.0/10"],
    ["198.18.0.1", "198.18.0.0/24"],
    ["240.0.0.1", "240.0.0.0/8"],
    ["fd12::1", "fd12::/16"],
    ["::ffff:10.1.2.3", "10.0.0.0/8"],
  ])("%s is called where %s names it, not because the list holds everything", (address, block) => {
    expect(new AddressBlocks(everything).refusal(address, false)).toContain("must name a block within");
    expect(new AddressBlocks([block]).refusal(address, false)).toBeUndefined();
  });
});

describe("a list", () => {
  test("says which address is outside of which list", () => {
    const list = new AddressBlocks(["203.0.113.0/24", "2001:db8::/32"]);
    expect(list.refusal("198.51.100.7", false)).toBe(
      "198.51.100.7 is outside callbackAddresses (203.0.113.0/24, 2001:db8::/32)",
    );
    expect(list.refusal("203.0.113.7", false)).toBeUndefined();
    expect(list.refusal("::ffff:203.0.113.7", false)).toBeUndefined();
    expect(list.refusal("64:ff9b::cb00:7107", false)).toBeUndefined();
    expect(list.refusal("2001:db8::7", false)).toBeUndefined();
  });

  test("shortens itself where it is long", () => {
    const blocks = Array.from({ length: 20 }, (_, i) => `203.0.113.${i}`);
    expect(new AddressBlocks(blocks).refusal("198.51.100.7", false)).toMatch(/203\.0\.113\.7 and 12 more\)$/);
  });

  test("lets listed loopback addresses through in the sandbox alone", () => {
    const list = new AddressBlocks(["127.0.0.0/8"]);
    expect(list.refusal("127.0.0.1", true)).toBeUndefined();
    expect(list.refusal("127.0.0.1", false)).toContain("loopback");
    expect(list.refusal("::1", true)).toContain("outside");
  });

  test.each(["fd00:ec2::254", "fd00:ec2::23", "fd20:ce::254", "fd00:c1::a9fe:a9fe"])(
    "of the operator's own network does not name the metadata service %s",
    (address) => {
      expect(new AddressBlocks(["fd00::/8"]).refusal(address, false)).toContain("metadata");
    },
  );

  test("of everything does not name the network's own translator, whose addresses carry others", () => {
    expect(new AddressBlocks(everything).refusal("64:ff9b:1:cb00:71:700::", false)).toBeDefined();
    expect(new AddressBlocks(["64:ff9b:1:1::/96"]).refusal("64:ff9b:1:1::cb00:7107", false)).toBeUndefined();
  });

  test("takes no caller for an IPv4 one because of an address inside that anybody can have routed to them", () => {
    const list = new AddressBlocks(["203.0.113.7"]);
    expect(list.contains("64:ff9b::cb00:7107")).toBe(true);
    for (const address of ["2002:cb00:7107::1", "2001:0:1:1:1:1:34ff:8ef8", "64:ff9b:1::cb00:7107"]) {
      expect(list.contains(address), address).toBe(false);
    }
  });

  test("knows what a socket calls an IPv4 caller", () => {
    const list = new AddressBlocks(["127.0.0.1/32"]);
    expect(list.contains("::ffff:127.0.0.1")).toBe(true);
    expect(list.contains("127.0.0.2")).toBe(false);
    expect(list.contains("not an address")).toBe(false);
  });

  test.each([
    "",
    "10.0.0.0/33",
    "10.0.0.0/",
    "10.0.0.0/08",
    "10.0.0/8",
    "10.0.0.0/8/8",
    "::/129",
    "fe80::1%eth0",
    "::ffff:10.0.0.0/104",
    "example.com",
    "0x7f.1",
    " 10.0.0.1",
  ])("does not take %j for a CIDR", (text) => {
    expect(parseBlock(text)).toBeUndefined();
    expect(() => new AddressBlocks([text])).toThrow(TypeError);
  });

  test("holds the addresses of its blocks and no others", () => {
    const octet = fc.integer({ min: 0, max: 255 });
    fc.assert(
      fc.property(
        fc.tuple(octet, octet, octet, octet),
        fc.tuple(octet, octet, octet, octet),
        fc.integer({ min: 0, max: 32 }),
        (network, address, bits) => {
          const number = (octets: readonly number[]) => octets.reduce((sum, value) => sum * 256 + value, 0);
          const same =
            Math.floor(number(network) / 2 ** (32 - bits)) === Math.floor(number(address) / 2 ** (32 - bits));
          expect(new AddressBlocks([`${network.join(".")}/${bits}`]).contains(address.join("."))).toBe(same);
        },
      ),
    );
  });
});

test.each([
  ["2001:db8:1:2::1", "2001:db8:1:2:ffff::9", true],
  ["2001:db8:1:2::1", "2001:db8:1:3::1", false],
  ["203.0.113.7", "203.0.113.8", false],
  ["203.0.113.7", "::ffff:203.0.113.7", true],
])("%s and %s count as one caller: %s", (one, other, counts) => {
  expect(networkOf(one) === networkOf(other)).toBe(counts);
});

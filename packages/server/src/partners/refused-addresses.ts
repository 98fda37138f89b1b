import ipaddr from "ipaddr.js";
import { type Block, type Ip, matches, requireBlock } from "./cidr.ts";

/** Addresses that callbacks do not go to. */
export interface RefusedRange extends Block {
  readonly what: string;
}

function range(what: string, ...blocks: string[]): RefusedRange[] {
  return blocks.map((text) => ({ what, ...requireBlock(text) }));
}

const loopback = range("a loopback address", "127.0.0.0/8", "::1/128");

/**
 * Never called, whatever a list says: none of them is a partner, and the metadata services return the machine's own
 * credentials.
 */
const never = [
  ...range("an unspecified address", "0.0.0.0/8", "::/128"),
  ...range("a link-local address", "169.254.0.0/16", "fe80::/10"),
  ...range("a multicast address", "224.0.0.0/4", "ff00::/8"),
  ...range("the broadcast address", "255.255.255.255/32"),
  // Neither leads where it seems to: the nearest relay answers for one, a network's own routers for the other.
  ...range("a 6to4 relay's address", "192.88.99.0/24"),
  ...range("an address of a network's segment routing", "5f00::/16"),
  // In fd00:ec2::/32 also ::23, which returns credentials as well, and its time and name services: never a callback.
  ...range("a cloud's metadata service", "100.100.100.200/32", "168.63.129.16/32"),
  ...range("a cloud's metadata service", "fd00:ec2::/32", "fd20:ce::/32", "fd00:c1::/32"),
];

/** Called only if a list names a block inside: 0.0.0.0/0 means the internet, not the operator's own network. */
const onlyWhenNamed = [
  ...range("a private address", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7", "fec0::/10"),
  ...range("a shared (carrier-grade NAT) address", "100.64.0.0/10"),
  ...range("a reserved address", "192.0.0.0/24", "198.18.0.0/15", "240.0.0.0/4"),
  // RFC 8215: the network chooses where the IPv4 address is, so it cannot be checked.
  ...range("an address of the network's own translator", "64:ff9b:1::/48"),
];

/** Why an address of this kind is never called, as the end of a sentence; undefined if a list may allow it. */
export function neverCalled(ip: Ip, loopbackAllowed: boolean): string | undefined {
  if (isIsatap(ip)) return "an ISATAP address, which is never called";
  const found = find(never, ip) ?? (loopbackAllowed ? undefined : find(loopback, ip));
  return found && `${found.what}, which is never called`;
}

/** The range of this address, if the address may be called only if a list names a block inside the range. */
export function rangeToBeNamed(ip: Ip): RefusedRange | undefined {
  return find(onlyWhenNamed, ip);
}

/** RFC 5214: a tunnel to the IPv4 address at its end, in a network of any prefix. */
function isIsatap(ip: Ip): boolean {
  if (!(ip instanceof ipaddr.IPv6)) return false;
  const [first = 0, ...others] = ip.toByteArray().slice(8, 12);
  return (first & ~0x02) === 0 && others.join() === "0,94,254";
}

function find(blocks: readonly RefusedRange[], ip: Ip): RefusedRange | undefined {
  return blocks.find((block) => matches(block, ip));
}

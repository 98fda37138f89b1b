import { isIP } from "node:net";
import ipaddr from "ipaddr.js";

/** CIDR blocks. A bare address is a block of one address. */
export class AddressBlocks {
  readonly #blocks: readonly Block[];

  /** @throws TypeError naming the first text that is not a CIDR. */
  constructor(blocks: readonly string[]) {
    this.#blocks = blocks.map(requireBlock);
  }

  /**
   * Whether a caller's address is in one of the blocks; false if it is not an address. IPv4 is recognised in its mapped
   * form and behind a NAT64, but not behind 6to4 and Teredo: anybody may announce their prefixes, and so receive the
   * answers to any IPv4 address inside.
   */
  contains(address: string): boolean {
    const ip = parseAddress(address);
    return ip !== undefined && (this.#holds(ip) || (matches(wellKnownNat64, ip) && this.#holds(embeddedIpv4(ip))));
  }

  /**
   * Why a callback must not go to this address: names the address, and the list. Undefined if it may. An IPv6 form that
   * contains an IPv4 address (mapped, NAT64, 6to4, Teredo) is checked by both.
   */
  refusal(address: string, loopbackAllowed: boolean): string | undefined {
    const ip = parseAddress(address);
    if (ip === undefined) return `${shown(address)} is not an IP address`;
    const inner = embeddedIpv4(ip);
    const refused = this.#refusedKind(ip, loopbackAllowed) ?? (inner && this.#refusedKind(inner, loopbackAllowed));
    if (refused !== undefined) return `${address} is ${refused}`;
    if (this.#holds(ip) || this.#holds(inner)) return undefined;
    return `${address} is outside callbackAddresses (${this.#shown()})`;
  }

  #refusedKind(ip: Ip, loopbackAllowed: boolean): string | undefined {
    const never = neverCalled(ip, loopbackAllowed);
    if (never !== undefined) return never;
    const range = rangeToBeNamed(ip);
    if (range === undefined || this.#blocks.some((block) => block.bits >= range.bits && matches(block, ip))) return;
    const rule = `callbackAddresses must name a block within ${range.text} for it`;
    return `${range.what}: ${rule}, and has ${this.#shown()}`;
  }

  #holds(ip: Ip | undefined): boolean {
    return ip !== undefined && this.#blocks.some((block) => matches(block, ip));
  }

  #shown(): string {
    const shownMax = 8;
    const names = this.#blocks.slice(0, shownMax).map((block) => block.text);
    const more = this.#blocks.length - names.length;
    return names.join(", ") + (more > 0 ? ` and ${more} more` : "");
  }
}

/** The network that counts as one caller: an IPv4 address, or the /64 of an IPv6 subscriber. */
export function networkOf(address: string | undefined): string {
  const ip = address === undefined ? undefined : parseAddress(address);
  if (ip === undefined) return "unknown";
  return ip instanceof ipaddr.IPv6 ? ip.toByteArray().slice(0, 8).join(".") : ip.toString();
}

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
function neverCalled(ip: Ip, loopbackAllowed: boolean): string | undefined {
  if (isIsatap(ip)) return "an ISATAP address, which is never called";
  const found = find(never, ip) ?? (loopbackAllowed ? undefined : find(loopback, ip));
  return found && `${found.what}, which is never called`;
}

/** The range of this address, if the address may be called only if a list names a block inside the range. */
function rangeToBeNamed(ip: Ip): RefusedRange | undefined {
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

const wellKnownNat64 = requireBlock("64:ff9b::/96");
/** The last one: RFC 2765's translated addresses. */
const translated = [wellKnownNat64, ...["64:ff9b:1::/48", "::ffff:0:0:0/96"].map(requireBlock)];
const sixToFour = requireBlock("2002::/16");
const teredo = requireBlock("2001::/32");
const compatible = requireBlock("::/96");
/** `::` and `::1` are addresses of their own. */
const ownLow = requireBlock("::/127");

/** The IPv4 address inside an IPv6 one, to which a gateway on the way would deliver. */
function embeddedIpv4(ip: Ip): Ip | undefined {
  if (!(ip instanceof ipaddr.IPv6)) return;
  const bytes = ip.toByteArray();
  const at = (offset: number, flip = 0) => new ipaddr.IPv4(bytes.slice(offset, offset + 4).map((byte) => byte ^ flip));
  if (translated.some((block) => matches(block, ip))) return at(12);
  if (matches(sixToFour, ip)) return at(2);
  if (matches(teredo, ip)) return at(12, 0xff);
  return matches(compatible, ip) && !matches(ownLow, ip) ? at(12) : undefined;
}

export type Ip = ipaddr.IPv4 | ipaddr.IPv6;

/** A CIDR block; a bare address is a block of one address. */
export interface Block {
  readonly text: string;
  readonly network: Ip;
  readonly bits: number;
}

/**
 * Parses a CIDR, or a bare address; undefined if it is neither. IPv4-mapped IPv6 is refused: its IPv4 form is
 * equivalent.
 */
export function parseBlock(text: string): Block | undefined {
  const [address = "", bitsText, ...rest] = text.split("/");
  const family = isIP(address);
  if (family === 0 || rest.length > 0 || address.includes("%")) return;
  if (bitsText !== undefined && !/^(0|[1-9][0-9]{0,2})$/.test(bitsText)) return;
  const bitsMax = family === 4 ? 32 : 128;
  const bits = bitsText === undefined ? bitsMax : Number(bitsText);
  const network = ipaddr.parse(address);
  if (bits > bitsMax || (network instanceof ipaddr.IPv6 && network.isIPv4MappedAddress())) return;
  return { text, network, bits };
}

/** @throws TypeError if the text is not a CIDR */
export function requireBlock(text: string): Block {
  const block = parseBlock(text);
  if (block === undefined) throw new TypeError(`${shown(text)} is not a CIDR such as 203.0.113.0/24 or 2001:db8::/32`);
  return block;
}

/** Parses an address, an IPv4-mapped one as IPv4; undefined if it is none. */
function parseAddress(text: string): Ip | undefined {
  const [address = ""] = text.split("%");
  return isIP(address) === 0 ? undefined : ipaddr.process(address);
}

export function matches(block: Block, ip: Ip): boolean {
  return block.network.kind() === ip.kind() && ip.match(block.network, block.bits);
}

/** The text in quotes, cut after 60 characters. */
function shown(text: string): string {
  return JSON.stringify(text.length > 60 ? `${text.slice(0, 60)}…` : text);
}

import ipaddr from "ipaddr.js";
import { type Block, type Ip, matches, parseAddress, requireBlock, shown } from "./cidr.ts";
import { embeddedIpv4, wellKnownNat64 } from "./embedded-ipv4.ts";
import { neverCalled, rangeToBeNamed } from "./refused-addresses.ts";

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

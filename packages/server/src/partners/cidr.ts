import { isIP } from "node:net";
import ipaddr from "ipaddr.js";

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
export function parseAddress(text: string): Ip | undefined {
  const [address = ""] = text.split("%");
  return isIP(address) === 0 ? undefined : ipaddr.process(address);
}

/** Whether the address is in the block. */
export function matches(block: Block, ip: Ip): boolean {
  return block.network.kind() === ip.kind() && ip.match(block.network, block.bits);
}

/** The text in quotes, cut after 60 characters. */
export function shown(text: string): string {
  return JSON.stringify(text.length > 60 ? `${text.slice(0, 60)}…` : text);
}

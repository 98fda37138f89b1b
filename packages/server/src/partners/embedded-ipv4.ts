import ipaddr from "ipaddr.js";
import { type Ip, matches, requireBlock } from "./cidr.ts";

export const wellKnownNat64 = requireBlock("64:ff9b::/96");
/** The last one: RFC 2765's translated addresses. */
const translated = [wellKnownNat64, ...["64:ff9b:1::/48", "::ffff:0:0:0/96"].map(requireBlock)];
const sixToFour = requireBlock("2002::/16");
const teredo = requireBlock("2001::/32");
const compatible = requireBlock("::/96");
/** `::` and `::1` are addresses of their own. */
const ownLow = requireBlock("::/127");

/** The IPv4 address inside an IPv6 one, to which a gateway on the way would deliver. */
export function embeddedIpv4(ip: Ip): Ip | undefined {
  if (!(ip instanceof ipaddr.IPv6)) return;
  const bytes = ip.toByteArray();
  const at = (offset: number, flip = 0) => new ipaddr.IPv4(bytes.slice(offset, offset + 4).map((byte) => byte ^ flip));
  if (translated.some((block) => matches(block, ip))) return at(12);
  if (matches(sixToFour, ip)) return at(2);
  if (matches(teredo, ip)) return at(12, 0xff);
  return matches(compatible, ip) && !matches(ownLow, ip) ? at(12) : undefined;
}

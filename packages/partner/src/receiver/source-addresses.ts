import { Misused } from "../errors/misused.ts";

interface Block {
  readonly address: bigint;
  readonly prefixBits: number;
}

/** Without node:net, which edge runtimes may lack. IPv4 is stored as ::ffff:a.b.c.d, however it is written. */
export type AddressList = readonly Block[];

/** @throws Misused naming the entry that is neither an address nor a CIDR block. */
export function addressList(option: string, entries: unknown): AddressList {
  if (!Array.isArray(entries)) throw new Misused("no_address", option);
  return entries.map((entry: unknown, at) => {
    const block = typeof entry === "string" ? readBlock(entry) : undefined;
    if (block === undefined) throw new Misused("no_address", `${option}[${at}]`);
    return block;
  });
}

/**
 * Whether the sender, as far as the proxies are trusted, is in the list. X-Forwarded-For is read from its end, only
 * while the writer of the entry is trusted. Anybody may have written the entries before that.
 */
export function isFrom(
  sources: AddressList,
  trustedProxies: AddressList,
  remoteAddress: string,
  forwardedFor: string,
): boolean {
  const entries = forwardedFor.split(",");
  let sender = readAddress(remoteAddress);
  while (sender !== undefined && entries.length > 0 && holds(trustedProxies, sender)) {
    const entry = entries.pop()?.trim() ?? "";
    // Some proxies also write the port.
    if (entry !== "") sender = readAddress(entry.replace(/^\[(.+)\](:\d+)?$/, "$1").replace(/^([\d.]+):\d+$/, "$1"));
  }
  return sender !== undefined && holds(sources, sender);
}

function holds(list: AddressList, address: bigint): boolean {
  return list.some((block) => {
    const shift = BigInt(128 - block.prefixBits);
    return address >> shift === block.address >> shift;
  });
}

function readBlock(text: string): Block | undefined {
  const [written = "", bits, ...rest] = text.split("/");
  const address = readAddress(written);
  const lengthMax = written.includes(":") ? 128 : 32;
  const prefixBits = bits === undefined ? lengthMax : /^\d{1,3}$/.test(bits) ? Number(bits) : Number.NaN;
  if (address === undefined || rest.length > 0 || !(prefixBits <= lengthMax)) return undefined;
  return { address, prefixBits: prefixBits + 128 - lengthMax };
}

const mapped = 0xffffn << 32n;

function readAddress(text: string): bigint | undefined {
  if (!text.includes(":")) {
    const v4 = readV4(text);
    return v4 === undefined ? undefined : mapped | v4;
  }
  const [bare = ""] = text.split("%");
  const [head = "", tail, ...rest] = bare.split("::");
  const before = readGroups(head);
  const after = tail === undefined ? [] : readGroups(tail);
  if (before === undefined || after === undefined || rest.length > 0) return undefined;
  const missing = 8 - before.length - after.length;
  if (tail === undefined ? missing !== 0 : missing < 1) return undefined;
  const groups = [...before, ...new Array<bigint>(missing).fill(0n), ...after];
  return groups.reduce((address, group) => (address << 16n) | group, 0n);
}

/** Groups of 16 bits; the last may be an IPv4 address. */
function readGroups(text: string): bigint[] | undefined {
  const groups: bigint[] = [];
  const parts = text === "" ? [] : text.split(":");
  for (const [at, part] of parts.entries()) {
    const v4 = at === parts.length - 1 && part.includes(".") ? readV4(part) : undefined;
    if (v4 !== undefined) groups.push(v4 >> 16n, v4 & 0xffffn);
    else if (/^[0-9a-fA-F]{1,4}$/.test(part)) groups.push(BigInt(`0x${part}`));
    else return undefined;
  }
  return groups;
}

function readV4(text: string): bigint | undefined {
  const parts = text.split(".");
  // Some readers take a leading zero for octal.
  if (parts.length !== 4 || !parts.every((part) => /^(0|[1-9]\d{0,2})$/.test(part) && Number(part) < 256))
    return undefined;
  return parts.reduce((address, part) => (address << 8n) | BigInt(part), 0n);
}

/** A tag of BER-TLV, and the place of its value: the index of its first hexadecimal digit, and of the one after it. */
export interface TlvHead {
  readonly tag: string;
  readonly from: number;
  readonly to: number;
}

/** The head at this index of a text in hexadecimal; undefined if it has none. Its value may be cut off. */
export function tlvHead(text: string, start: number): TlvHead | undefined {
  const byte = (at: number) => Number.parseInt(text.slice(at, at + 2), 16);
  let at = start + 2;
  // Five low bits that are all set: the tag continues, as long as the first bit of a byte is set.
  if ((byte(start) & 0x1f) === 0x1f) {
    while ((byte(at) & 0x80) !== 0) at += 2;
    at += 2;
  }
  const tag = text.slice(start, at);
  const first = byte(at);
  at += 2;
  if (Number.isNaN(first)) return undefined;
  if (first < 0x80) return { tag, from: at, to: at + first * 2 };
  const lengthBytes = first & 0x7f;
  const length = Number.parseInt(text.slice(at, at + lengthBytes * 2), 16);
  at += lengthBytes * 2;
  return Number.isNaN(length) ? undefined : { tag, from: at, to: at + length * 2 };
}

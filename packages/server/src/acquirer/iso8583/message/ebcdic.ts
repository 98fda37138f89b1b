/** IBM's code page 1047: for each byte its character of ISO 8859-1. */
const characters = Buffer.from(
  "000102039c09867f978d8e0b0c0d0e0f101112139d8508871819928f1c1d1e1f80818283840a171b88898a8b8c050607" +
    "909116939495960498999a9b14159e1a20a0e2e4e0e1e3e5e7f1a22e3c282b7c26e9eaebe8edeeefecdf21242a293b5e" +
    "2d2fc2c4c0c1c3c5c7d1a62c255f3e3ff8c9cacbc8cdcecfcc603a2340273d22d8616263646566676869abbbf0fdfeb1" +
    "b06a6b6c6d6e6f707172aabae6b8c6a4b57e737475767778797aa1bfd05bdeaeaca3a5b7a9a7b6bcbdbedda8af5db4d7" +
    "7b414243444546474849adf4f6f2f3f57d4a4b4c4d4e4f505152b9fbfcf9faff5cf7535455565758595ab2d4d6d2d3d5" +
    "30313233343536373839b3dbdcd9da9f",
  "hex",
);
const bytes = Buffer.alloc(256);
for (const [byte, character] of characters.entries()) bytes[character] = byte;

/** @param latin1 bytes, a character each */
export function fromEbcdic(latin1: Buffer): string {
  return translated(latin1, characters).toString("latin1");
}

/** A character that the code page lacks becomes the one of its lower byte: formats refuse such before. */
export function toEbcdic(text: string): Buffer {
  return translated(Buffer.from(text, "latin1"), bytes);
}

function translated(from: Buffer, table: Buffer): Buffer {
  const to = Buffer.allocUnsafe(from.length);
  for (let at = 0; at < from.length; at += 1) to[at] = table[from[at] ?? 0] ?? 0;
  return to;
}

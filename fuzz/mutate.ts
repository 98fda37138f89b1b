/** From 0 to less than 1; the same seed gives the same numbers (mulberry32). */
export function seeded(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

const bytesMax = 4_096;
/** Values that often break parsers. */
const words = [
  ...['"', "\\", "\\u0000", "\\ud800", "{", "}", "[", "]", ",", ":", "null", "-0", "1e999", "__proto__", "constructor"],
  ...["\0", "\u2028", "\u200d", "\ufeff", "é", "😀", "%00", "%2e%2e", "::", "::ffff:127.0.0.1", "0x7f.1", "/32", "@"],
  ...["4111111111111111", "cvv", " ", "\r\n", ".", "=", "==", "A".repeat(64), "9".repeat(40)],
].map((text) => Buffer.from(text));

/** Another input near this one: some bytes changed, taken out, repeated, or joined with those of a second one. */
export function mutated(input: Buffer, other: Buffer, random: () => number): Buffer {
  let bytes = input;
  const steps = 1 + Math.floor(random() * 4);
  for (let step = 0; step < steps; step += 1) bytes = change(bytes, other, random);
  return bytes.subarray(0, bytesMax);
}

function change(bytes: Buffer, other: Buffer, random: () => number): Buffer {
  const at = Math.floor(random() * (bytes.length + 1));
  const end = Math.min(bytes.length, at + 1 + Math.floor(random() ** 3 * 32));
  const [head, middle, tail] = [bytes.subarray(0, at), bytes.subarray(at, end), bytes.subarray(end)];
  const word = words[Math.floor(random() * words.length)] ?? Buffer.of();
  const byte = Buffer.of(Math.floor(random() * 256));
  const cut = other.subarray(Math.floor(random() * (other.length + 1)));
  const changes = [
    [head, byte, bytes.subarray(at + 1)],
    [head, byte, middle, tail],
    [head, tail],
    [head, middle, middle, tail],
    [head, word, middle, tail],
    [head, word, tail],
    [head, cut],
    [head, cut.subarray(0, 16), tail],
  ];
  return Buffer.concat(changes[Math.floor(random() * changes.length)] ?? []);
}

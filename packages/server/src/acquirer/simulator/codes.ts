/** A number from 0 (included) to 1 (excluded), as Math.random gives. */
export type Random = () => number;

const approveCodeAlphabet = "0123456789ABCDEFGHJKLMNPQRSTUVWXYZ";
const approveCodeLength = 6;
const refIdDigits = 12;

/** Six letters and digits, as issuers give them: ISO 8583 field 38. */
export function approveCode(random: Random): string {
  let code = "";
  for (let at = 0; at < approveCodeLength; at += 1) {
    code += approveCodeAlphabet.charAt(Math.floor(random() * approveCodeAlphabet.length));
  }
  return code;
}

/** Twelve digits, as acquirers give them: ISO 8583 field 37. */
export function refId(random: Random): string {
  return Math.floor(random() * 10 ** refIdDigits)
    .toString()
    .padStart(refIdDigits, "0");
}

/** Mulberry32: a seeded random source, for tests and for a sandbox with repeatable answers. */
export function seededRandom(seed: number): Random {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** Digits that an amount may have in its currency's smallest unit: ISO 8583 field 4. */
const minorDigitsMax = 12;
const minorLimit = 10n ** BigInt(minorDigitsMax);
/** The most that any currency of ISO 4217 has. */
const decimalsMax = 4;

const amountPattern = /^(0|[1-9][0-9]*)(?:\.([0-9]+))?$/;

/** Why a text is no amount of a currency with so many decimals; undefined when it is one. */
export function amountProblem(text: string, decimals: number | undefined): string | undefined {
  const [, whole, fraction = ""] = amountPattern.exec(text) ?? [];
  if (whole === undefined) return 'must be digits with at most one point, such as "150000" or "12.50"';
  if (fraction.length > (decimals ?? decimalsMax)) return `may have at most ${decimals ?? decimalsMax} decimals`;
  const minor = toMinor(whole, fraction, decimals ?? fraction.length);
  if (minor === 0n) return "must be above zero";
  if (minor >= minorLimit) return `may have at most ${minorDigitsMax} digits in the currency's smallest unit`;
  return undefined;
}

/**
 * An amount in its currency's smallest unit, exactly.
 *
 * @throws RangeError when the text is no amount of such a currency: ask {@link amountProblem} first.
 */
export function parseAmount(text: string, decimals: number): bigint {
  const problem = amountProblem(text, decimals);
  if (problem !== undefined) throw new RangeError(`The amount ${problem}`);
  const [whole = "", fraction = ""] = text.split(".");
  return toMinor(whole, fraction, decimals);
}

function toMinor(whole: string, fraction: string, decimals: number): bigint {
  return BigInt(whole + fraction.padEnd(decimals, "0"));
}

/** A sum in the smallest unit, written in the major unit with exactly the currency's decimals. */
export function formatAmount(minor: bigint, decimals: number): string {
  const sign = minor < 0n ? "-" : "";
  const digits = (minor < 0n ? -minor : minor).toString().padStart(decimals + 1, "0");
  const point = digits.length - decimals;
  return decimals === 0 ? `${sign}${digits}` : `${sign}${digits.slice(0, point)}.${digits.slice(point)}`;
}

/** Digits that an amount may have in its currency's smallest unit: ISO 8583 field 4. */
const minorDigitsMax = 12;
const minorLimit = 10n ** BigInt(minorDigitsMax);
/** For a sum: a batch of 50,000 amounts of twelve digits has seventeen. */
const sumDigitsMax = 18;
/** The maximum of all currencies in ISO 4217. */
const decimalsMax = 4;

const amountPattern = /^(0|[1-9][0-9]*)(?:\.([0-9]+))?$/;

/** Why a text is not an amount of a currency with this many decimals; undefined if it is. */
export function amountProblem(text: string, decimals: number | undefined): string | undefined {
  const problem = amountOrZeroProblem(text, decimals);
  return problem ?? (/[1-9]/.test(text) ? undefined : "must be above zero");
}

/** The same for an amount that may be zero: a card was only verified, or declined. */
export function amountOrZeroProblem(text: string, decimals: number | undefined): string | undefined {
  const problem = amountShapeProblem(text, decimals);
  if (problem !== undefined) return problem;
  const [whole = "", fraction = ""] = text.split(".");
  if (toMinor(whole, fraction, decimals ?? fraction.length) < minorLimit) return undefined;
  return `may have at most ${minorDigitsMax} digits in the currency's smallest unit`;
}

/** The same for a sum, which may have more digits than one amount. */
export function amountShapeProblem(text: string, decimals: number | undefined): string | undefined {
  const [, whole, fraction = ""] = amountPattern.exec(text) ?? [];
  if (whole === undefined) return 'must be digits with at most one point, such as "150000" or "12.50"';
  if (whole.length > sumDigitsMax) return `may have at most ${sumDigitsMax} digits before the point`;
  if (fraction.length > (decimals ?? decimalsMax)) return `may have at most ${decimals ?? decimalsMax} decimals`;
  return undefined;
}

/**
 * Parses an amount into its currency's smallest unit, exactly.
 *
 * @throws RangeError if the text is not such an amount: call {@link amountProblem} first.
 */
export function parseAmount(text: string, decimals: number): bigint {
  const problem = amountProblem(text, decimals);
  if (problem !== undefined) throw new RangeError(`The amount ${problem}`);
  const [whole = "", fraction = ""] = text.split(".");
  return toMinor(whole, fraction, decimals);
}

/** The same for any text; undefined for one that is not a sum of a currency with this many decimals. */
export function minorOf(text: string, decimals: number): bigint | undefined {
  if (amountShapeProblem(text, decimals) !== undefined) return undefined;
  const [whole = "", fraction = ""] = text.split(".");
  return toMinor(whole, fraction, decimals);
}

function toMinor(whole: string, fraction: string, decimals: number): bigint {
  return BigInt(whole + fraction.padEnd(decimals, "0"));
}

/** Formats a sum in the smallest unit with exactly the currency's decimals. */
export function formatAmount(minor: bigint, decimals: number): string {
  const sign = minor < 0n ? "-" : "";
  const digits = (minor < 0n ? -minor : minor).toString().padStart(decimals + 1, "0");
  const point = digits.length - decimals;
  return decimals === 0 ? `${sign}${digits}` : `${sign}${digits.slice(0, point)}.${digits.slice(point)}`;
}

/** An exact number: units of 10 to the power of minus `scale`. */
export interface Decimal {
  readonly units: bigint;
  readonly scale: number;
}

/** Undefined for a text that is no decimal number, such as `1e3` or `1,000.00`. */
export function readDecimal(text: string): Decimal | undefined {
  const [, whole, fraction = ""] = /^(-?\d+)(?:\.(\d+))?$/.exec(text) ?? [];
  return whole === undefined ? undefined : { units: BigInt(whole + fraction), scale: fraction.length };
}

/** The sum, or with `sign` -1 the difference, with the decimals of the more precise one. */
export function addDecimals(one: Decimal, other: Decimal, sign: 1n | -1n = 1n): Decimal {
  const scale = Math.max(one.scale, other.scale);
  const at = ({ units, scale: own }: Decimal) => units * 10n ** BigInt(scale - own);
  return { units: at(one) + sign * at(other), scale };
}

/** Written with all its decimals. */
export function writeDecimal({ units, scale }: Decimal): string {
  const digits = (units < 0n ? -units : units).toString().padStart(scale + 1, "0");
  const whole = digits.slice(0, digits.length - scale);
  return `${units < 0n ? "-" : ""}${whole}${scale === 0 ? "" : `.${digits.slice(-scale)}`}`;
}

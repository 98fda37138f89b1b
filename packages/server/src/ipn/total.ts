/** The partner's setting for the total: Sales plus Voids, as the specification says, or Sales minus Voids. */
export type SettlementTotal = "sum" | "net";

interface Decimal {
  readonly units: bigint;
  readonly scale: number;
}

/**
 * totalAmount of section 2.3 from the two totals, exactly, with the decimals of the more precise one. Empty if either
 * is not a decimal number: a wrong total is worse than none.
 */
export function totalAmount(saleTotal: string, voidTotal: string, which: SettlementTotal): string {
  const sales = read(saleTotal);
  const voids = read(voidTotal);
  if (sales === undefined || voids === undefined) return "";
  const scale = Math.max(sales.scale, voids.scale);
  const voided = rescale(voids, scale);
  return write(rescale(sales, scale) + (which === "sum" ? voided : -voided), scale);
}

const decimalPattern = /^(-?\d+)(?:\.(\d+))?$/;

function read(text: string): Decimal | undefined {
  const [, whole, fraction = ""] = decimalPattern.exec(text) ?? [];
  if (whole === undefined) return undefined;
  return { units: BigInt(whole + fraction), scale: fraction.length };
}

function rescale(decimal: Decimal, scale: number): bigint {
  return decimal.units * 10n ** BigInt(scale - decimal.scale);
}

function write(units: bigint, scale: number): string {
  const negative = units < 0n;
  const digits = (negative ? -units : units).toString().padStart(scale + 1, "0");
  const whole = digits.slice(0, digits.length - scale);
  const fraction = scale === 0 ? "" : `.${digits.slice(-scale)}`;
  return `${negative ? "-" : ""}${whole}${fraction}`;
}

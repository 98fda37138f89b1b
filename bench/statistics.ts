/** The percentile of values in any order; NaN if there are none. */
export function median(values: readonly number[]): number {
  return percentile(values, 50);
}

/** The nearest rank: a value that really occurred; of an even number's median, the mean of the middle two. */
export function percentile(values: readonly number[] | Float64Array, rank: number): number {
  const sorted = Float64Array.from(values).sort();
  if (sorted.length === 0) return Number.NaN;
  if (rank === 50 && sorted.length % 2 === 0) {
    return ((sorted[sorted.length / 2 - 1] ?? 0) + (sorted[sorted.length / 2] ?? 0)) / 2;
  }
  return sorted[Math.max(0, Math.ceil((rank / 100) * sorted.length) - 1)] ?? Number.NaN;
}

/** A ratio over the rounds. */
export interface Spread {
  readonly median: number;
  readonly min: number;
  readonly max: number;
}

export function spread(values: readonly number[]): Spread {
  return { median: median(values), min: Math.min(...values), max: Math.max(...values) };
}

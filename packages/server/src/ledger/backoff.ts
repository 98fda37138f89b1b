/** Seconds before a Reversal or settlement is repeated that the acquirer did not answer; the last one repeats. */
const backoffS = [1, 2, 5, 10, 30, 60] as const;

/** The wait after the given number of tries, in milliseconds. */
export function backoffMs(tries: number): number {
  return (backoffS[Math.min(tries, backoffS.length) - 1] ?? 60) * 1_000;
}

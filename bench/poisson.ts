/** Arrivals that know nothing of each other: their moments, in milliseconds from the start. */
export function poisson(ratePerS: number, durationMs: number): Float64Array {
  const times: number[] = [];
  for (let atMs = 0; ; ) {
    atMs -= (Math.log(1 - Math.random()) / ratePerS) * 1_000;
    if (atMs >= durationMs) return Float64Array.from(times);
    times.push(atMs);
  }
}

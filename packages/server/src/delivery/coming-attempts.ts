/**
 * When a notification is tried, if each attempt fails: from the next one on, to the last one at the schedule's end.
 * Jitter, and what an answer asks for, move them.
 *
 * @param stepsMade steps once the next attempt was made
 */
export function comingAttemptsMs(
  retryS: readonly number[],
  next: { readonly atMs: number; readonly stepsMade: number; readonly endMs: number },
): readonly number[] {
  const times = [next.atMs];
  for (let step = Math.max(1, next.stepsMade); step < retryS.length; step += 1) {
    times.push((times.at(-1) ?? 0) + (retryS[step - 1] ?? 0) * 1_000);
  }
  return [...times.filter((atMs) => atMs < next.endMs), Math.max(next.atMs, next.endMs)];
}

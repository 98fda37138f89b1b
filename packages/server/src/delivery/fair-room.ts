/** What anybody may take of `max`, as long as one is free. */
export function few(max: number): number {
  return Math.max(1, Math.floor(max / 64));
}

/**
 * How many more of `max` somebody may take who holds `held` of the `taken` ones, so that many who begin to hang in the
 * same second leave room for those that answer:
 *
 * - until half of all are taken, as many as it likes
 * - until three quarters are, while it is lively: it shows again and again that it gives back
 * - from then on, until it holds few, a 64th
 */
export function fairRoom(max: number, taken: number, held: number, isLively: boolean): number {
  const untilMark = (isLively ? threeQuarters(max) : half(max)) - taken;
  return Math.max(0, Math.min(max - taken, Math.max(untilMark, few(max) - held)));
}

/** Whether somebody who may take none while so many are taken may take one when another gives one back. */
export function isMark(max: number, taken: number): boolean {
  return taken === max || taken === half(max) || taken === threeQuarters(max);
}

function half(max: number): number {
  return Math.ceil(max / 2);
}

function threeQuarters(max: number): number {
  return Math.ceil((max * 3) / 4);
}

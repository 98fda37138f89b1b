/** Numbers that the seed alone decides, so that a run can be repeated with the same faults at the same places. */
export interface SeededRandom {
  /** From 0 to less than 1. */
  next(): number;
  /** From `least` to less than `most`. */
  between(least: number, most: number): number;
  /** A whole number from `from` to `to`, both included. */
  within(from: number, to: number): number;
  chance(probability: number): boolean;
  /** One of them. */
  pick<Item>(items: readonly Item[]): Item;
  /** The same items in another order. */
  shuffled<Item>(items: readonly Item[]): Item[];
  /** One of its own, so that what one part draws does not change what another part draws. */
  fork(name: string): SeededRandom;
}

/** sfc32. No keys are made of it. */
export function seeded(seed: number): SeededRandom {
  let [a, b, c, counter] = [seed | 0, Math.floor(seed / 2 ** 32) | 0, 0x9e3779b9 | 0, 1];
  const next = (): number => {
    const sum = (((a + b) | 0) + counter) | 0;
    counter = (counter + 1) | 0;
    a = b ^ (b >>> 9);
    b = (c + (c << 3)) | 0;
    c = (((c << 21) | (c >>> 11)) + sum) | 0;
    return (sum >>> 0) / 2 ** 32;
  };
  for (let drawn = 0; drawn < 12; drawn += 1) next();
  const within = (from: number, to: number) => from + Math.floor(next() * (to - from + 1));
  return {
    next,
    within,
    between: (least, most) => least + next() * (most - least),
    chance: (probability) => next() < probability,
    pick(items) {
      if (items.length === 0) throw new Error("There is nothing to pick from.");
      return items[within(0, items.length - 1)] as (typeof items)[number];
    },
    shuffled(items) {
      const all = [...items];
      for (let last = all.length - 1; last > 0; last -= 1) {
        const other = within(0, last);
        [all[last], all[other]] = [all[other] as (typeof items)[number], all[last] as (typeof items)[number]];
      }
      return all;
    },
    fork: (name) => seeded(hash32(`${seed}/${name}`)),
  };
}

/** FNV-1a: distinguishes texts by 32 bits. */
function hash32(text: string): number {
  let hash = 0x811c9dc5;
  for (let at = 0; at < text.length; at += 1) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193);
  return hash >>> 0;
}

/** Numbers that the seed alone decides, so that a run can be repeated with the same faults at the same places. */
export interface SeededRandom {
  /** From 0 to less than 1. */
  next(): number;
  /** A whole number from `from` to `to`, both included. */
  within(from: number, to: number): number;
  /** One of them. */
  pick<Item>(items: readonly Item[]): Item;
  /** The same items in another order. */
  shuffled<Item>(items: readonly Item[]): Item[];
  /** One of its own, so that what one part draws does not change what another part draws. */
  fork(name: string): SeededRandom;
}

/** Mulberry32: 32 bits of state are plenty for choosing faults, and no keys are made of it. */
export function seeded(seed: number): SeededRandom {
  let state = seed >>> 0;
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
  const within = (from: number, to: number) => from + Math.floor(next() * (to - from + 1));
  const shuffled = <Item>(items: readonly Item[]): Item[] => {
    const all = [...items];
    for (let last = all.length - 1; last > 0; last -= 1) {
      const other = within(0, last);
      [all[last], all[other]] = [all[other] as Item, all[last] as Item];
    }
    return all;
  };
  return {
    next,
    within,
    pick(items) {
      if (items.length === 0) throw new Error("There is nothing to pick from.");
      return items[within(0, items.length - 1)] as (typeof items)[number];
    },
    shuffled,
    fork: (name) => seeded(hash32(`${seed}/${name}`)),
  };
}

/** FNV-1a: distinguishes texts by 32 bits. */
export function hash32(text: string): number {
  let hash = 0x811c9dc5;
  for (let at = 0; at < text.length; at += 1) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193);
  return hash >>> 0;
}

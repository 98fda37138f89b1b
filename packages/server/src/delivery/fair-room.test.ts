import fc from "fast-check";
import { expect, test } from "vitest";
import { fairRoom, few, isMark } from "./fair-room.ts";

const max = 512;

test("until half of all are taken, anybody may take more", () => {
  expect(fairRoom(max, 0, 0, false)).toBe(256);
  expect(fairRoom(max, 255, 200, false)).toBe(1);
  expect(fairRoom(max, 256, 200, false)).toBe(0);
});

test("from half on, who holds a few may take more while it is lively, and below three quarters", () => {
  expect(fairRoom(max, 256, 8, false)).toBe(0);
  expect(fairRoom(max, 256, 8, true)).toBe(128);
  expect(fairRoom(max, 383, 8, true)).toBe(1);
  expect(fairRoom(max, 384, 8, true)).toBe(0);
});

test("who holds fewer than a few may take more as long as one is free", () => {
  expect(fairRoom(max, 384, 7, false)).toBe(1);
  expect(fairRoom(max, 500, 0, false)).toBe(8);
  expect(fairRoom(max, 509, 0, true)).toBe(3);
  expect(fairRoom(max, 512, 0, true)).toBe(0);
});

const standing = fc
  .tuple(fc.integer({ min: 1, max: 300 }), fc.boolean(), fc.nat(), fc.nat())
  .map(([all, isLively, a, b]) => {
    const taken = a % (all + 1);
    return { all, taken, held: b % (taken + 1), isLively };
  });

test("to take all that there is room for is the same at once and one by one", () => {
  fc.assert(
    fc.property(standing, ({ all, taken, held, isLively }) => {
      let more = 0;
      while (fairRoom(all, taken + more, held + more, isLively) > 0) more += 1;
      expect(fairRoom(all, taken, held, isLively)).toBe(more);
    }),
  );
});

test("one at least can be had while one is free, and a few are no more than half", () => {
  fc.assert(
    fc.property(standing, ({ all, taken }) => {
      expect(fairRoom(all, taken, 0, false) > 0).toBe(taken < all);
      expect(few(all)).toBeLessThanOrEqual(Math.ceil(all / 2));
    }),
  );
});

test("what others give back opens room to somebody at the marks alone", () => {
  fc.assert(
    fc.property(standing, ({ all, taken, held, isLively }) => {
      fc.pre(taken > held);
      const opens = fairRoom(all, taken, held, isLively) === 0 && fairRoom(all, taken - 1, held, isLively) > 0;
      if (opens) expect(isMark(all, taken)).toBe(true);
    }),
  );
});

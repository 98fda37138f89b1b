import { expect, test } from "vitest";
import { BoundedMap } from "./bounded-map.ts";

test("a bounded map forgets the oldest entry, and not a newer one under its key", () => {
  const map = new BoundedMap<string, number>(2);
  for (const [nth, key] of ["a", "a", "b"].entries()) map.set(key, nth);
  expect(map.values()).toEqual([1, 2]);
  map.set("c", 3);
  expect([map.get("a"), ...map.values()]).toEqual([undefined, 2, 3]);
});

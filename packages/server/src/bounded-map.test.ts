import { expect, test } from "vitest";
import { BoundedMap, Cooldown } from "./bounded-map.ts";

test("a bounded map forgets the oldest entry, and not a newer one under its key", () => {
  const map = new BoundedMap<string, number>(2);
  for (const [nth, key] of ["a", "a", "b"].entries()) map.set(key, nth);
  expect(map.values()).toEqual([1, 2]);
  map.set("c", 3);
  expect([map.get("a"), ...map.values()]).toEqual([undefined, 2, 3]);
});

test("a cooldown lets something be done once in its time for each key, and again once it is ended", () => {
  const cooldown = new Cooldown<string>(1_000, 2);
  expect([cooldown.begin("a", 0), cooldown.begin("a", 999), cooldown.begin("b", 999)]).toEqual([true, false, true]);
  expect([cooldown.begin("a", 1_000), cooldown.begin("a", 1_999)]).toEqual([true, false]);
  cooldown.end("a");
  expect(cooldown.begin("a", 1_999)).toBe(true);
});

test("a cooldown of too many keys forgets the one that began first", () => {
  const cooldown = new Cooldown<string>(1_000, 2);
  for (const key of ["a", "b", "c"]) expect(cooldown.begin(key, 0)).toBe(true);
  expect([cooldown.begin("c", 1), cooldown.begin("b", 1), cooldown.begin("a", 1)]).toEqual([false, false, true]);
});

import { expect, test } from "vitest";
import { newId, type PartnerId } from "../ids.ts";
import { CommandSlots } from "./command-slots.ts";

function takeAll(places: CommandSlots, partnerId: PartnerId): (() => void)[] {
  const taken: (() => void)[] = [];
  for (let one = places.acquire(partnerId); one !== undefined; one = places.acquire(partnerId)) taken.push(one);
  return taken;
}

test("one partner gets half of the slots, and each further one leaves as many as it takes", () => {
  const places = new CommandSlots(4_000);
  expect(takeAll(places, newId())).toHaveLength(2_000);
  expect(takeAll(places, newId())).toHaveLength(1_000);
  expect(takeAll(places, newId())).toHaveLength(500);
  expect(places.acquire(newId())).toBeDefined();
});

test("slots are idle when the last one is released", async () => {
  const places = new CommandSlots(4);
  await places.idle();
  const [one, other] = takeAll(places, newId());
  let isIdle = false;
  const idle = places.idle().then(() => {
    isIdle = true;
  });
  one?.();
  await Promise.resolve();
  expect(isIdle).toBe(false);
  other?.();
  await idle;
});

test("a released slot is free again, once", () => {
  const places = new CommandSlots(10);
  const [one, other] = [newId<"partner">(), newId<"partner">()];
  const [first, ...others] = takeAll(places, one);
  first?.();
  first?.();
  const again = takeAll(places, one);
  expect([others.length, again.length]).toEqual([4, 1]);
  for (const release of [...others, ...again]) release();
  expect(takeAll(places, one)).toHaveLength(5);
  expect(takeAll(places, other)).toHaveLength(3);
});

test("a single slot can be acquired", () => {
  const places = new CommandSlots(1);
  expect(takeAll(places, newId())).toHaveLength(1);
  expect(places.acquire(newId())).toBeUndefined();
});

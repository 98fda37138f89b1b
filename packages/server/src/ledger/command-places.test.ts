import { expect, test } from "vitest";
import { newId, type PartnerId } from "../ids.ts";
import { CommandPlaces } from "./command-places.ts";

function takeAll(places: CommandPlaces, partnerId: PartnerId): (() => void)[] {
  const taken: (() => void)[] = [];
  for (let one = places.take(partnerId); one !== undefined; one = places.take(partnerId)) taken.push(one);
  return taken;
}

test("one partner takes half of the places, and what each further one takes is left as well", () => {
  const places = new CommandPlaces(4_000);
  expect(takeAll(places, newId())).toHaveLength(2_000);
  expect(takeAll(places, newId())).toHaveLength(1_000);
  expect(takeAll(places, newId())).toHaveLength(500);
  expect(places.take(newId())).toBeDefined();
});

test("a place that is given back is free again, once", () => {
  const places = new CommandPlaces(10);
  const [one, other] = [newId<"partner">(), newId<"partner">()];
  const taken = takeAll(places, one);
  expect(taken).toHaveLength(5);
  for (const giveBack of taken) {
    giveBack();
    giveBack();
  }
  expect(takeAll(places, one)).toHaveLength(5);
  expect(takeAll(places, other)).toHaveLength(3);
});

test("a single place can be taken", () => {
  const places = new CommandPlaces(1);
  expect(takeAll(places, newId())).toHaveLength(1);
  expect(places.take(newId())).toBeUndefined();
});

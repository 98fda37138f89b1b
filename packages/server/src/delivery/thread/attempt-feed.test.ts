import { expect, test } from "vitest";
import { newId } from "../../ids.ts";
import { acceptedAttempt, deliveryOf } from "../delivery.fixture.ts";
import { AttemptFeed, notesMax } from "./attempt-feed.ts";

test("a stalled main thread gets a bounded number of attempts, and later the number left out", () => {
  const told: string[] = [];
  const leftOut: number[] = [];
  const notes = new AttemptFeed(
    ([{ id }]) => void told.push(id),
    (attempts) => void leftOut.push(attempts),
  );
  const add = () => {
    const delivery = deliveryOf(newId<"partner">());
    notes.add([delivery, { attempt: acceptedAttempt, next: { kind: "accepted" } }]);
    return delivery.id;
  };
  for (let nth = 0; nth < notesMax + 3; nth += 1) add();
  expect(told).toHaveLength(notesMax);
  notes.noted(0);
  expect(leftOut).toEqual([]);
  notes.noted(1_024);
  expect(leftOut).toEqual([3]);
  const next = add();
  expect(told.at(-1)).toBe(next);
  notes.noted(1_024);
  expect(leftOut).toEqual([3]);
});

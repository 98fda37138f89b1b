import { expect, test } from "vitest";
import { newId } from "../ids.ts";
import { RecentOutcomes } from "./recent-outcomes.ts";

const attempt = (round: number, attemptsMade: number) => ({ id: newId<"notification">(), round, attemptsMade });

test("an outcome is known for its attempt and all earlier ones, not for a later attempt or round", () => {
  const outcomes = new RecentOutcomes(10);
  const one = attempt(1, 3);
  outcomes.add(one);
  expect(outcomes.knows(one)).toBe(true);
  expect(outcomes.knows({ ...one, attemptsMade: 2 })).toBe(true);
  expect(outcomes.knows({ ...one, round: 0, attemptsMade: 9 })).toBe(true);
  expect(outcomes.knows({ ...one, attemptsMade: 4 })).toBe(false);
  expect(outcomes.knows({ ...one, round: 2, attemptsMade: 0 })).toBe(false);
  expect(outcomes.knows(attempt(0, 0))).toBe(false);
});

test("an outcome is remembered for a period at least, and for two at most", () => {
  const outcomes = new RecentOutcomes(10);
  outcomes.forget(0, 0);
  const [first, second] = [attempt(0, 0), attempt(0, 0)];
  outcomes.add(first);
  outcomes.forget(9, 9);
  outcomes.add(second);
  outcomes.forget(10, 10);
  expect([first, second].map((one) => outcomes.knows(one))).toEqual([true, true]);
  outcomes.forget(19, 19);
  expect(outcomes.knows(second)).toBe(true);
  outcomes.forget(20, 20);
  expect([first, second].map((one) => outcomes.knows(one))).toEqual([false, false]);
});

test("outcomes that a running read may predate are remembered, however long it takes", () => {
  const outcomes = new RecentOutcomes(10);
  outcomes.forget(0, 0);
  const one = attempt(0, 0);
  outcomes.add(one);
  outcomes.forget(10, 5);
  outcomes.forget(20, 5);
  outcomes.forget(100, 5);
  expect(outcomes.knows(one)).toBe(true);
  outcomes.forget(110, 105);
  expect(outcomes.knows(one)).toBe(false);
});

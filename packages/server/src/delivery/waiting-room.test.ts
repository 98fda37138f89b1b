import { expect, test } from "vitest";
import { newId, type PartnerId } from "../ids.ts";
import type { Instance } from "../instance.ts";
import { claimedOf } from "./claimed.fixture.ts";
import type { Claimed } from "./store.ts";
import { type Seat, WaitingRoom } from "./waiting-room.ts";

const [first, second] = [newId<"partner">(), newId<"partner">()] as const;
const instance: Instance = { id: newId<"instance">(), epoch: 1 };
const anybody = () => true;

function room(seatsMax = 8) {
  const clock = { ms: 0 };
  return { clock, room: new WaitingRoom(seatsMax, () => clock.ms) };
}

function seat(of: WaitingRoom, partnerId: PartnerId, bytes = 1): Seat {
  const seat = of.take(partnerId, bytes, 100, true);
  if (seat === undefined) throw new Error("there was no seat");
  return seat;
}

function wait(of: WaitingRoom, partnerId: PartnerId): Claimed {
  const one = claimedOf(partnerId);
  of.wait(one, instance, seat(of, partnerId));
  return one;
}

test("seats are bounded for all and for each partner, and count their bytes", () => {
  const { room: of } = room(3);
  const held = seat(of, first, 10);
  seat(of, first, 20);
  expect(of.take(first, 1, 2, true)).toBeUndefined();
  seat(of, second, 5);
  expect(of.bytes).toBe(35);
  expect(of.take(second, 1, 2, true)).toBeUndefined();
  of.give(held);
  expect(of.bytes).toBe(25);
  expect(of.take(second, 1, 2, true)).toBeDefined();
});

test("those that show no life leave half of all seats but a few, and three quarters are left by any", () => {
  const { room: of } = room(512);
  const take = (partnerId: PartnerId, isLively: boolean) => {
    let seats = 0;
    while (of.take(partnerId, 1, 1_000, isLively)) seats += 1;
    return seats;
  };
  expect(take(first, false)).toBe(256);
  expect(take(second, false)).toBe(8);
  expect(take(first, true)).toBe(120);
  expect(take(newId<"partner">(), true)).toBe(8);
});

test("a seat is given up once", () => {
  const { room: of } = room();
  const held = seat(of, first);
  of.give(held);
  expect(() => of.give(held)).toThrow(/twice/);
});

test("partners leave in turn, each in the order in which its deliveries came", () => {
  const { room: of } = room();
  const [a, b, c] = [wait(of, first), wait(of, first), wait(of, second)];
  expect([of.next(anybody), of.next(anybody), of.next(anybody)].map((next) => next?.claimed)).toEqual([a, c, b]);
  expect(of.next(anybody)).toBeUndefined();
  expect(of.waiting).toBe(0);
});

test("a partner without a place holds up nobody else", () => {
  const { room: of } = room();
  wait(of, first);
  const other = wait(of, second);
  expect(of.next((partnerId) => partnerId !== first)?.claimed).toBe(other);
  expect(of.next((partnerId) => partnerId !== first)).toBeUndefined();
  expect(of.waiting).toBe(1);
});

test("what leaves gives up its seat", () => {
  const { room: of } = room(1);
  wait(of, first);
  expect(of.take(first, 1, 100, true)).toBeUndefined();
  expect(of.nextOf(first)).toBeDefined();
  expect(of.bytes).toBe(0);
  expect(of.take(first, 1, 100, true)).toBeDefined();
});

test("what has waited too long is taken out with its seat, and what came later stays", () => {
  const { clock, room: of } = room();
  const old = wait(of, first);
  clock.ms = 900;
  const young = wait(of, first);
  clock.ms = 1_000;
  expect(of.waiting).toBe(2);
  expect(of.overdue(1_000).map(({ claimed }) => claimed)).toEqual([old]);
  expect(of.waiting).toBe(1);
  expect(of.nextOf(first)?.claimed).toBe(young);
  expect(of.bytes).toBe(0);
});

import { expect, test } from "vitest";
import { newId } from "../ids.ts";
import type { Partner } from "../partners/partner.ts";
import { Admission } from "./admission.ts";
import type { Seat } from "./waiting-room.ts";

const id = newId<"partner">();
const perSecond = 100;
const partner = { id, settings: { maxInFlight: 1_000, maxPerSecond: perSecond } } as Partner;

function admission(known: () => Partner | undefined) {
  const clock = { ms: 0 };
  const directory = { peek: known };
  const limits = { slotsMax: 1_000, bytesInFlightMax: 1e9 };
  return { clock, admission: new Admission({ directory, ...limits, nowMs: () => clock.ms }) };
}

function seats(of: Admission) {
  const taken: Seat[] = [];
  for (let seat = of.seat(partner, 1); seat; seat = of.seat(partner, 1)) taken.push(seat);
  return taken;
}

test("what waits for its commit counts in the second in which it leaves", () => {
  const { clock, admission: of } = admission(() => partner);
  const first = seats(of);
  expect(first).toHaveLength(perSecond);
  // The database took so long: without it the seats of then and of now left in the same moment.
  clock.ms = 500;
  expect(seats(of)).toHaveLength(1);
  for (const seat of first) of.unseat(seat);
  expect(seats(of).length).toBeLessThanOrEqual(perSecond);
});

test("a partner whose settings were not at hand when places were taken is limited all the same", () => {
  let known: Partner | undefined;
  const { admission: of } = admission(() => known);
  const places = Array.from({ length: 30 }, () => of.place(id, 1)).filter((place) => place !== undefined);
  expect(places).toHaveLength(30);
  known = partner;
  expect(places.filter((place) => of.mayLeave(place, 10))).toHaveLength(10);
  // Those that took no token give none back.
  for (const place of places.slice(10)) of.unsent(place);
  for (const place of places.slice(10)) of.leave(place);
  expect(of.rates.available(id, 10)).toBe(0);
});

import { expect, test } from "vitest";
import { newId, type PartnerId } from "../ids.ts";
import type { Partner } from "../partners/partner.ts";
import { Admission, type SeatLimit, seatsPerPlace } from "./admission.ts";
import { claimedOf } from "./claimed.fixture.ts";
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

test("who gets no seat is told by which limit", () => {
  const clock = { ms: 0 };
  const limits: SeatLimit[] = [];
  const of = new Admission({
    directory: { peek: () => undefined },
    slotsMax: 4,
    bytesInFlightMax: 100,
    nowMs: () => clock.ms,
    onNoSeat: (limit) => limits.push(limit),
  });
  const other = (maxInFlight: number, maxPerSecond: number | null): Partner =>
    ({ id: newId<"partner">(), settings: { maxInFlight, maxPerSecond } }) as Partner;
  const small = other(1, null);
  const fill = (partner: Partner, count: number, bytes = 1) =>
    Array.from({ length: count }, () => of.seat(partner, bytes)).filter((seat) => seat !== undefined);
  const seats = 4 * seatsPerPlace;
  expect(fill(small, seatsPerPlace + 1)).toHaveLength(seatsPerPlace);
  expect(fill(other(9, 1), 2)).toHaveLength(1);
  expect(fill(other(9, null), 1, 100)).toHaveLength(0);
  expect(fill(other(9, null), seats - seatsPerPlace)).toHaveLength(seats - seatsPerPlace - 1);
  const hanging = other(9, null);
  of.place(hanging.id, 1);
  of.place(hanging.id, 1);
  clock.ms = 2_000;
  expect(fill(hanging, 1)).toHaveLength(0);
  expect(limits).toEqual(["max_in_flight", "max_per_second", "bytes", "seats", "hanging"]);
});

test("a claim brings as much more as a partner gave places back since the last one", () => {
  const clock = { ms: 0 };
  const settings = { maxInFlight: 4, maxPerSecond: null };
  const of = new Admission({
    directory: { peek: (id) => ({ id, settings }) as unknown as Partner },
    slotsMax: 6,
    bytesInFlightMax: 1_000,
    nowMs: () => clock.ms,
  });
  const [steady, stuck] = [newId<"partner">(), newId<"partner">()];
  const instance = { id: newId<"instance">(), epoch: 1 };
  const take = (id: PartnerId) => of.place(id, 1) ?? expect.unreachable("there was no place");
  const places = Array.from({ length: 4 }, () => take(steady));
  for (let n = 0; n < 2; n += 1) take(stuck);
  expect(of.claimable).toBe(0);
  expect(of.allowance()).toEqual({ rowsMax: 0, without: new Set([steady, stuck]), rowsMaxOf: new Map() });
  for (const place of places.slice(0, 3)) of.leave(place);
  for (let n = 0; n < 3; n += 1) take(steady);
  // All places are taken again: of what comes, so much will find one.
  expect(of.claimable).toBe(3);
  expect(of.allowance()).toEqual({ rowsMax: 3, without: new Set([stuck]), rowsMaxOf: new Map([[steady, 3]]) });
  expect(of.claimable).toBe(0);
  const claimed = claimedOf(steady);
  expect(of.waitFor(claimed, instance)).toBe(true);
  of.leave(places[3] ?? expect.unreachable());
  // One waits already for the place that was given back.
  expect(of.claimable).toBe(1);
  expect(of.next(steady)?.claimed).toBe(claimed);
});

test("a claim brings no more ahead than a partner has in flight, however fast it answered", () => {
  const settings = { maxInFlight: 1, maxPerSecond: null };
  const of = new Admission({
    directory: { peek: (id) => ({ id, settings }) as unknown as Partner },
    slotsMax: 512,
    bytesInFlightMax: 1_000,
    nowMs: () => 0,
  });
  const quick = newId<"partner">();
  for (let n = 0; n < 100; n += 1) of.leave(of.place(quick, 1) ?? expect.unreachable("there was no place"));
  of.place(quick, 1);
  expect(of.allowance().rowsMaxOf).toEqual(new Map([[quick, 1]]));
});

test("of a claim nobody waits whose attempts hang, whose rate is limited, or whose bytes find no room", () => {
  const clock = { ms: 0 };
  const make = (maxPerSecond: number | null) =>
    new Admission({
      directory: { peek: (id) => ({ id, settings: { maxInFlight: 4, maxPerSecond } }) as unknown as Partner },
      slotsMax: 2,
      bytesInFlightMax: 100,
      nowMs: () => clock.ms,
    });
  const instance = { id: newId<"instance">(), epoch: 1 };
  const id = newId<"partner">();
  expect(make(5).waitFor(claimedOf(id), instance)).toBe(false);
  const of = make(null);
  expect(of.waitFor(claimedOf(id, { content: "x".repeat(101) }), instance)).toBe(false);
  expect(of.waitFor(claimedOf(id), instance)).toBe(true);
  of.place(id, 1);
  clock.ms = 2_000;
  expect(of.waitFor(claimedOf(id), instance)).toBe(false);
});

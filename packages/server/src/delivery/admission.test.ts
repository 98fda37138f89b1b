import fc from "fast-check";
import { expect, test } from "vitest";
import { newId, type PartnerId } from "../ids.ts";
import type { Partner } from "../partners/partner.ts";
import { Admission, partnerMaxUnknown, type SeatLimit, seatsPerPlace } from "./admission.ts";
import { claimedOf } from "./claimed.fixture.ts";
import type { Place } from "./slots.ts";
import type { Claimed } from "./store.ts";
import type { Seat } from "./waiting-room.ts";

const id = newId<"partner">();
const instance = { id: newId<"instance">(), epoch: 1 };
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

function withPartners(slotsMax: number, maxInFlight = 32, onNoSeat?: (limit: SeatLimit) => void) {
  const clock = { ms: 0 };
  const settings = { maxInFlight, maxPerSecond: null };
  const of = new Admission({
    directory: { peek: (id) => ({ id, settings }) as unknown as Partner },
    slotsMax,
    bytesInFlightMax: 1_000_000,
    nowMs: () => clock.ms,
    ...(onNoSeat && { onNoSeat }),
  });
  const partner = () => ({ id: newId<"partner">(), settings }) as unknown as Partner;
  const take = (id: PartnerId, count = 1) =>
    Array.from({ length: count }, () => of.place(id, 1) ?? expect.unreachable("there was no place"));
  const leave = (...places: readonly Place[]) => {
    for (const place of places) of.leave(place, true);
  };
  /** What is written now, and waits as there is no place. */
  const wait = (partner: Partner) => {
    const claimed = claimedOf(partner.id);
    const seat = of.seat(partner, 1) ?? expect.unreachable("there was no seat");
    expect(of.stand(seat, claimed, instance)).toBeUndefined();
    return claimed;
  };
  /** Who leaves now that a place of the partner was given back. */
  const served = (partnerId: PartnerId) => {
    const all: Claimed[] = [];
    for (let next = of.next(partnerId); next; next = of.next(partnerId)) {
      all.push(next.claimed);
      take(next.seat.partnerId);
    }
    return all;
  };
  return { clock, of, partner, take, leave, wait, served };
}

test("who gets no seat is told by which limit", () => {
  const limits: SeatLimit[] = [];
  const { clock, of, take, leave } = withPartners(64, 32, (limit) => limits.push(limit));
  const other = (maxInFlight: number, maxPerSecond: number | null): Partner =>
    ({ id: newId<"partner">(), settings: { maxInFlight, maxPerSecond } }) as Partner;
  const fill = (partner: Partner, count: number, bytes = 1) =>
    Array.from({ length: count }, () => of.seat(partner, bytes)).filter((seat) => seat !== undefined).length;
  const seats = 64 * seatsPerPlace;
  expect(fill(other(1, null), seatsPerPlace + 1)).toBe(seatsPerPlace);
  expect(fill(other(9, 1), 2)).toBe(1);
  expect(fill(other(9, null), 1, 1_000_000)).toBe(0);
  // Half of all are for everybody, a quarter more for who answers.
  const [silent, lively] = [other(99, null), other(99, null)];
  expect(fill(silent, seats / 2 - seatsPerPlace)).toBe(seats / 2 - seatsPerPlace - 1);
  leave(...take(lively.id));
  expect(fill(lively, seats / 4 + 1)).toBe(seats / 4);
  for (let left = seats / 4; left > 0; left -= 1) expect(fill(other(9, null), 1)).toBe(1);
  expect(fill(other(9, null), 1)).toBe(0);
  const hanging = other(32, null);
  take(hanging.id, 32);
  clock.ms = 2_000;
  expect(fill(hanging, 1)).toBe(0);
  expect(limits).toEqual(["max_in_flight", "max_per_second", "bytes", "hanging", "seats", "seats", "hanging"]);
});

test("partners that wait where three quarters are taken leave in turn, and nobody beside them", () => {
  const { of, partner, take, leave, wait, served } = withPartners(16);
  const [quick, one, other] = [partner(), partner(), partner()];
  leave(...take(quick.id), ...take(one.id), ...take(other.id));
  const places = [...take(quick.id, 10), ...take(one.id), ...take(other.id)];
  const ofOne = [wait(one), wait(one)];
  const ofOther = [wait(other), wait(other)];
  const ofQuick = [wait(quick)];
  const turns: Claimed[][] = [];
  for (const place of places.slice(0, 5)) {
    leave(place);
    turns.push(served(quick.id));
    expect(of.slots.taken).toBe(12);
  }
  expect(turns).toEqual([[ofOne[0]], [ofOther[0]], ofQuick, [ofOne[1]], [ofOther[1]]]);
});

test("all that waited leaves when the attempts of others that held it up are no longer too many", () => {
  const { clock, of, partner, take, leave, wait, served } = withPartners(16);
  const [one, other, third] = [partner(), partner(), partner()];
  leave(...take(one.id));
  const hanging = take(other.id, 5);
  take(one.id, 3);
  take(third.id);
  clock.ms = 99;
  const [young] = take(one.id);
  clock.ms = 500;
  const waiting = [wait(one), wait(one)];
  clock.ms = 1_050;
  if (young) leave(young);
  expect(of.slots.isLively(one.id)).toBe(true);
  expect(served(one.id)).toEqual([]);
  for (const place of hanging.slice(0, 2)) of.leave(place);
  expect(served(other.id)).toEqual(waiting);
});

test("what waits leaves when another partner gives back the last place of the first half", () => {
  const { of, partner, take, leave, wait, served } = withPartners(16);
  const [slow, quick] = [partner(), partner()];
  take(slow.id, 7);
  const [own] = take(quick.id);
  const waiting = [wait(slow), wait(slow)];
  if (own) leave(own);
  expect(served(quick.id)).toEqual(waiting.slice(0, 1));
  expect(of.slots.taken).toBe(8);
});

const turn = fc.record({
  partner: fc.nat({ max: 7 }),
  does: fc.constantFrom("seat", "seat", "stand", "stand", "stand", "end", "end", "cut"),
  waitMs: fc.constantFrom(0, 0, 0, 0, 0, 60, 1_000),
  which: fc.nat(),
});

function removed<One>(of: One[], which: number): One | undefined {
  return of.splice(which % Math.max(1, of.length), 1)[0];
}

test("nobody waits who has room, whoever gave what back", () => {
  fc.assert(
    fc.property(fc.array(turn, { maxLength: 300, size: "max" }), (turns) => {
      const { clock, of, partner } = withPartners(16, 9);
      const partners = Array.from({ length: 8 }, partner);
      const [seats, held]: [Seat[], Place[]] = [[], []];
      const keep = <One>(where: One[], one: One | undefined) => void where.push(...(one ? [one] : []));
      const doOne = {
        seat: (whose: Partner) => keep(seats, of.seat(whose, 1)),
        stand: (_: Partner, which: number) => {
          const seat = removed(seats, which);
          keep(held, seat && of.stand(seat, claimedOf(seat.partnerId), instance));
        },
        end: (_: Partner, which: number) => give(removed(held, which), true),
        cut: (_: Partner, which: number) => give(removed(held, which), false),
      };
      const give = (place: Place | undefined, ended: boolean) => {
        if (place === undefined) return;
        of.leave(place, ended);
        for (let next = of.next(place.partnerId); next; next = of.next(place.partnerId)) {
          held.push(of.place(next.seat.partnerId, 1) ?? expect.unreachable("it had no room"));
        }
      };
      for (const { partner, does, waitMs, which } of turns) {
        clock.ms += waitMs;
        doOne[does](partners[partner] ?? expect.unreachable(), which);
        const waiting = partners.filter(({ id }) => of.waitingRoom.waitingOf(id) > 0);
        expect(waiting.filter(({ id }) => of.slots.room(id, 9) > 0)).toEqual([]);
        expect(of.waitingRoom.waiting).toBe(waiting.reduce((sum, { id }) => sum + of.waitingRoom.waitingOf(id), 0));
      }
    }),
  );
});

test("a claim brings as much more as a partner gave places back since the last one", () => {
  const { of, take, leave } = withPartners(512, 4);
  const [steady, stuck] = [newId<"partner">(), newId<"partner">()];
  const places = take(steady, 4);
  take(stuck, 4);
  const share = { rowsPerPartnerMax: partnerMaxUnknown };
  const none = new Map();
  expect(of.claimable).toBe(504);
  expect(of.allowance()).toEqual({ ...share, rowsMax: 504, without: new Set([steady, stuck]), rowsMaxOf: none });
  leave(...places.slice(0, 3));
  take(steady, 3);
  // All of its places are taken again: of what comes, so much will find one.
  expect(of.claimable).toBe(507);
  const more = new Map([[steady, 3]]);
  expect(of.allowance()).toEqual({ ...share, rowsMax: 507, without: new Set([stuck]), rowsMaxOf: more });
  expect(of.claimable).toBe(504);
  const claimed = claimedOf(steady);
  expect(of.waitFor(claimed, instance)).toBe(true);
  leave(...places.slice(3));
  // One waits already for the place that was given back.
  expect(of.claimable).toBe(505);
  expect(of.claimableOf(steady)).toBe(1);
  expect(of.next(steady)?.claimed).toBe(claimed);
  // What waits of others is enough as well.
  take(steady);
  expect(of.claimableOf(steady)).toBe(1);
  expect(of.waitFor(claimedOf(stuck), instance)).toBe(true);
  expect(of.claimableOf(steady)).toBe(0);
});

test("where half of all places are taken a claim brings few rows of who is new, and none of who shows no life", () => {
  const { clock, of, take, leave } = withPartners(512);
  const silent = Array.from({ length: 8 }, () => newId<"partner">());
  const places = silent.flatMap((id) => take(id, 32));
  const [quick, fresh] = [newId<"partner">(), newId<"partner">()];
  leave(...take(quick));
  take(quick, 10);
  take(fresh, 3);
  const without = new Set(silent);
  const rowsMaxOf = new Map([
    [quick, 22 + 1],
    [fresh, 5],
  ]);
  expect(of.allowance()).toEqual({ rowsMax: 243 + 1, rowsPerPartnerMax: 8, without, rowsMaxOf });
  // What is given back at a deadline is no pace to go on at.
  const [cut] = places;
  if (cut) of.leave(cut);
  clock.ms = 100;
  expect(of.allowance()).toMatchObject({ rowsPerPartnerMax: 8, without: new Set([...silent, quick]) });
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
  const id = newId<"partner">();
  expect(make(5).waitFor(claimedOf(id), instance)).toBe(false);
  const of = make(null);
  expect(of.waitFor(claimedOf(id, { content: "x".repeat(101) }), instance)).toBe(false);
  expect(of.waitFor(claimedOf(id), instance)).toBe(true);
  of.place(id, 1);
  clock.ms = 2_000;
  expect(of.waitFor(claimedOf(id), instance)).toBe(false);
});

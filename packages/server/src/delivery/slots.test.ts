import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { newId, type PartnerId } from "../ids.ts";
import { type Place, Slots } from "./slots.ts";

const [slow, quick, third] = [newId<"partner">(), newId<"partner">(), newId<"partner">()] as const;

function slots(slotsMax = 8, bytesMax = 1_000) {
  const clock = { ms: 0 };
  return { clock, slots: new Slots({ slotsMax, bytesMax }, () => clock.ms) };
}

function fill(of: Slots, partnerId: PartnerId, count: number): Place[] {
  return Array.from({ length: count }, () => {
    const place = of.take(partnerId, 1, 100);
    if (place === undefined) throw new Error("there was no place");
    return place;
  });
}

describe("the places among the POSTs in flight", () => {
  test("are bounded for all, for each partner, and in bytes", () => {
    const { slots: of } = slots(4, 100);
    fill(of, slow, 2);
    expect(of.take(slow, 1, 2)).toBeUndefined();
    expect(of.take(quick, 99, 2)).toBeUndefined();
    fill(of, quick, 2);
    expect(of.take(third, 1, 2)).toBeUndefined();
  });

  test("let one that is larger than all bytes through alone", () => {
    const { slots: of } = slots(4, 100);
    const large = of.take(slow, 5_000, 2);
    expect(large).toBeDefined();
    expect(of.take(quick, 1, 2)).toBeUndefined();
    if (large) of.give(large);
    expect(of.take(quick, 1, 2)).toBeDefined();
  });

  test("are given back once", () => {
    const { slots: of } = slots();
    const [place] = fill(of, slow, 1);
    if (place) of.give(place);
    expect(() => place && of.give(place)).toThrow("given back twice");
  });

  test("are refused to a partner that holds old ones while half of all are old", () => {
    const { clock, slots: of } = slots(8);
    const [first] = fill(of, slow, 4);
    clock.ms = 999;
    expect(of.room(slow, 100)).toBe(4);
    clock.ms = 1_000;
    expect(of.room(slow, 100)).toBe(0);
    expect(of.take(slow, 1, 100)).toBeUndefined();
    expect(of.room(quick, 100)).toBe(4);
    fill(of, quick, 3);
    if (first) of.give(first);
    expect(of.take(slow, 1, 100)).toBeDefined();
  });

  test("say when none is taken", async () => {
    const { slots: of } = slots();
    const places = fill(of, slow, 2);
    let isEmpty = false;
    const empty = of.empty().then(() => {
      isEmpty = true;
    });
    const [one, other] = places;
    if (one) of.give(one);
    await Promise.resolve();
    expect(isEmpty).toBe(false);
    if (other) of.give(other);
    await empty;
  });

  const step = fc.record({
    partner: fc.constantFrom(slow, quick, third),
    bytes: fc.integer({ min: 0, max: 300 }),
    waitMs: fc.integer({ min: 0, max: 700 }),
    gives: fc.boolean(),
    which: fc.nat(),
  });

  test("count what is held, whatever is taken and given back, and grow old by the clock", () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 120 }), (steps) => {
        const { clock, slots: of } = slots(8);
        const held: Place[] = [];
        for (const { partner, bytes, waitMs, gives, which } of steps) {
          clock.ms += waitMs;
          if (gives) {
            for (const place of held.splice(which % Math.max(1, held.length), 1)) of.give(place);
            continue;
          }
          const old = held.filter(({ sinceMs }) => clock.ms - sinceMs >= 1_000);
          const holdsUp = old.length >= 4 && old.some(({ partnerId }) => partnerId === partner);
          const place = of.take(partner, bytes, 5);
          if (holdsUp) expect(place).toBeUndefined();
          held.push(...(place ? [place] : []));
          expect(of.taken).toBe(held.length);
          expect(of.bytes).toBe(held.reduce((sum, place) => sum + place.bytes, 0));
          for (const id of [slow, quick, third]) {
            expect(of.ofPartner(id)).toBe(held.filter(({ partnerId }) => partnerId === id).length);
          }
        }
      }),
    );
  });
});

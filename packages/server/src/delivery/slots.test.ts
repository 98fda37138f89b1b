import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { newId, type PartnerId } from "../ids.ts";
import { type Place, Slots } from "./slots.ts";

const [slow, quick, third] = [newId<"partner">(), newId<"partner">(), newId<"partner">()] as const;
const partners = [slow, quick, third, newId<"partner">(), newId<"partner">(), newId<"partner">()];

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

/** One POST that is answered at once. */
function answer(of: Slots, partnerId: PartnerId): void {
  for (const place of fill(of, partnerId, 1)) of.give(place, true);
}

describe("the places among the POSTs in flight", () => {
  test("are bounded for all, for each partner, and in bytes", () => {
    const { slots: of } = slots(4, 100);
    fill(of, slow, 2);
    expect(of.take(slow, 1, 2)).toBeUndefined();
    expect(of.take(quick, 99, 2)).toBeUndefined();
    fill(of, quick, 1);
    fill(of, third, 1);
    expect(of.take(newId<"partner">(), 1, 2)).toBeUndefined();
  });

  test("let one that is larger than all bytes through alone", () => {
    const { slots: of } = slots(4, 100);
    const large = of.take(slow, 5_000, 2);
    expect(large).toBeDefined();
    expect(of.take(quick, 1, 2)).toBeUndefined();
    if (large) of.give(large, true);
    expect(of.take(quick, 1, 2)).toBeDefined();
  });

  test("are given back once", () => {
    const { slots: of } = slots();
    const [place] = fill(of, slow, 1);
    if (place) of.give(place, true);
    expect(() => place && of.give(place, true)).toThrow("given back twice");
    fill(of, slow, 1);
    expect(() => place && of.give(place, true)).toThrow("given back twice");
  });

  test("are refused to a partner that holds old ones while half of all are old", () => {
    const { clock, slots: of } = slots(8);
    answer(of, slow);
    const [first, second, third] = fill(of, slow, 5);
    clock.ms = 999;
    if (first) of.give(first, true);
    expect(of.room(slow, 100)).toBe(2);
    clock.ms = 1_000;
    expect(of.isLively(slow)).toBe(true);
    expect(of.room(slow, 100)).toBe(0);
    expect(of.take(slow, 1, 100)).toBeUndefined();
    expect(of.room(quick, 100)).toBe(1);
    fill(of, quick, 1);
    for (const place of [second, third]) if (place) of.give(place, true);
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
    if (one) of.give(one, true);
    await Promise.resolve();
    expect(isEmpty).toBe(false);
    if (other) of.give(other, true);
    await empty;
  });

  test("are three quarters taken when partners hang that answered until then, and the others go on", () => {
    const { clock, slots: of } = slots(512);
    const hanging = Array.from({ length: 16 }, () => newId<"partner">());
    for (const id of hanging) answer(of, id);
    for (let turn = 0; turn < 32; turn += 1) for (const id of hanging) of.take(id, 1, 32);
    expect(of.taken).toBe(384);
    fill(of, quick, 8);
    clock.ms = 2_000;
    for (const id of hanging) expect(of.room(id, 32)).toBe(0);
    answer(of, third);
    expect(of.room(third, 32)).toBe(8);
  });

  test("are half taken when partners hang that had not shown any life, and a few of each", () => {
    const { slots: of } = slots(512);
    const hanging = Array.from({ length: 16 }, () => newId<"partner">());
    for (const id of hanging) while (of.take(id, 1, 32));
    expect(hanging.map((id) => of.ofPartner(id))).toEqual([...Array(8).fill(32), ...Array(8).fill(8)]);
    expect(of.taken).toBe(256 + 8 * 8);
    for (const id of [quick, third]) answer(of, id);
    expect(of.room(quick, 32)).toBe(32);
  });

  test("show life for a tenth of a second, when an attempt ended of itself within a second", () => {
    const { clock, slots: of } = slots();
    const [soon, late, cut] = fill(of, slow, 3);
    expect(of.isLively(slow)).toBe(false);
    clock.ms = 10;
    // At its deadline, or nothing was sent.
    if (cut) of.give(cut, false);
    expect(of.isLively(slow)).toBe(false);
    if (soon) of.give(soon, true);
    clock.ms = 109;
    expect(of.isLively(slow)).toBe(true);
    clock.ms = 110;
    expect(of.isLively(slow)).toBe(false);
    clock.ms = 1_000;
    if (late) of.give(late, true);
    expect(of.isLively(slow)).toBe(false);
  });

  test("say when others, too, have room again", () => {
    const { clock, slots: of } = slots(8);
    answer(of, slow);
    const places = fill(of, slow, 6);
    const give = (count: number) => places.splice(0, count).map((place) => of.give(place, true));
    expect(give(2)).toEqual([6, 0]);
    clock.ms = 1_000;
    expect(of.room(slow, 100)).toBe(0);
    // Those that were old held half of all.
    expect(give(2)).toEqual([8, 0]);
  });

  const all = 12;
  const partnerMax = 9;
  const step = fc.record({
    partner: fc.constantFrom(...partners),
    bytes: fc.integer({ min: 0, max: 200 }),
    waitMs: fc.oneof(fc.constantFrom(0, 0, 0, 50, 100, 1_000), fc.integer({ min: 0, max: 700 })),
    does: fc.constantFrom("take", "take", "take", "end", "end", "cut"),
    which: fc.nat(),
  });

  /** What is held, counted anew each time. */
  function model() {
    const held: Place[] = [];
    const signs = new Map<PartnerId, number>();
    const ofPartner = (id: PartnerId) => held.filter(({ partnerId }) => partnerId === id).length;
    const bytesHeld = () => held.reduce((sum, place) => sum + place.bytes, 0);
    const mayTake = (id: PartnerId, bytes: number, nowMs: number) => {
      const old = held.filter(({ sinceMs }) => nowMs - sinceMs >= 1_000);
      if (held.length === all || ofPartner(id) === partnerMax) return false;
      if (bytesHeld() > 0 && bytesHeld() + bytes > 1_000) return false;
      if (old.length >= all / 2 && old.some(({ partnerId }) => partnerId === id)) return false;
      const isLively = nowMs - (signs.get(id) ?? -1_000) < 100;
      return held.length < all / 2 || ofPartner(id) === 0 || (isLively && held.length < (all * 3) / 4);
    };
    return { held, signs, ofPartner, bytesHeld, mayTake };
  }

  function give(of: Slots, { held, signs }: ReturnType<typeof model>, which: number, ended: boolean, nowMs: number) {
    const [place] = held.splice(which % Math.max(1, held.length), 1);
    if (place === undefined) return;
    of.give(place, ended);
    if (ended && nowMs - place.sinceMs < 1_000) signs.set(place.partnerId, nowMs);
  }

  test("count what is held, whatever is taken and given back, and give room by their rules", () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 160, size: "max" }), (steps) => {
        const { clock, slots: of } = slots(all);
        const kept = model();
        for (const { partner, bytes, waitMs, does, which } of steps) {
          clock.ms += waitMs;
          if (does !== "take") give(of, kept, which, does === "end", clock.ms);
          else {
            const mayTake = kept.mayTake(partner, bytes, clock.ms);
            const place = of.take(partner, bytes, partnerMax);
            expect(place !== undefined).toBe(mayTake);
            if (place !== undefined) kept.held.push(place);
          }
          expect(of.taken).toBe(kept.held.length);
          expect(of.bytes).toBe(kept.bytesHeld());
          const counts = partners.map((id) => kept.ofPartner(id));
          expect(partners.map((id) => of.ofPartner(id))).toEqual(counts);
          expect(new Set(of.holders())).toEqual(new Set(partners.filter((_, nth) => counts[nth] !== 0)));
        }
      }),
    );
  });
});

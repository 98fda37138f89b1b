import { expect, test } from "vitest";
import { newId, type PartnerId } from "../../ids.ts";
import { partnerSnapshot } from "../../partners/partner.fixture.ts";
import { RemotePartners } from "./remote-partners.ts";

function remote() {
  const clock = { nowMs: 100_000 };
  const asked: (readonly [PartnerId, boolean])[] = [];
  const partners = new RemotePartners({ monotonicMs: () => clock.nowMs }, (id, isKnown) => asked.push([id, isKnown]));
  return { clock, asked, partners };
}

test("a partner is requested when it is needed, every half second until it arrives", () => {
  const { clock, asked, partners } = remote();
  const id = newId<"partner">();
  expect([partners.peek(id), partners.peek(id)]).toEqual([undefined, undefined]);
  expect(asked).toEqual([[id, false]]);
  clock.nowMs += 501;
  expect(partners.peek(id)).toBeUndefined();
  expect(asked).toHaveLength(2);
});

test("a received partner is available, and requested again in time while it is in use", () => {
  const { clock, asked, partners } = remote();
  const partner = partnerSnapshot();
  const { id } = partner;
  partners.peek(id);
  expect(partners.received({ id, partner, confirmedMs: clock.nowMs })).toBe(true);
  clock.nowMs += 2_500;
  expect(partners.peek(id)).toBe(partner);
  expect(asked).toHaveLength(1);
  clock.nowMs += 1;
  expect(partners.peek(id)).toBe(partner);
  expect(asked).toEqual([
    [id, false],
    [id, true],
  ]);
  expect(partners.received({ id, partner: "same", confirmedMs: clock.nowMs })).toBe(false);
  clock.nowMs += 5_000;
  expect(partners.peek(id)).toBe(partner);
});

test("a partner confirmed more than five seconds ago is not used until it is confirmed again", () => {
  const { clock, partners } = remote();
  const partner = partnerSnapshot();
  const { id } = partner;
  partners.peek(id);
  // It was read a while before the answer arrived.
  partners.received({ id, partner, confirmedMs: clock.nowMs - 4_000 });
  clock.nowMs += 1_000;
  expect(partners.peek(id)).toBe(partner);
  clock.nowMs += 1;
  expect(partners.peek(id)).toBeUndefined();
  // Callers that waited for it must look again.
  expect(partners.received({ id, partner: "same", confirmedMs: clock.nowMs })).toBe(true);
  expect(partners.peek(id)).toBe(partner);
});

test("an answer that is older than the known one, or was not requested, changes nothing", () => {
  const { clock, partners } = remote();
  const [before, now] = [partnerSnapshot(), partnerSnapshot()];
  const { id } = now;
  partners.peek(id);
  partners.received({ id, partner: now, confirmedMs: clock.nowMs });
  expect(partners.received({ id, partner: { ...before, id }, confirmedMs: clock.nowMs - 1 })).toBe(false);
  expect(partners.peek(id)).toBe(now);
  expect(partners.received({ id: before.id, partner: before, confirmedMs: clock.nowMs })).toBe(false);
});

test("a partner that does not exist, or cannot be read, is no longer available", () => {
  const { clock, partners } = remote();
  const partner = partnerSnapshot();
  const { id } = partner;
  partners.peek(id);
  partners.received({ id, partner, confirmedMs: clock.nowMs });
  expect(partners.received({ id, partner: undefined, confirmedMs: clock.nowMs + 1 })).toBe(true);
  expect(partners.peek(id)).toBeUndefined();
});

test("partners in use are never forgotten, and others after a minute", () => {
  const { clock, asked, partners } = remote();
  const ids = Array.from({ length: 20_000 }, () => newId<"partner">());
  const told = partnerSnapshot();
  for (const id of ids) {
    partners.peek(id);
    partners.received({ id, partner: { ...told, id }, confirmedMs: clock.nowMs });
  }
  expect(ids.every((id) => partners.peek(id) !== undefined)).toBe(true);
  expect(asked).toHaveLength(ids.length);
  clock.nowMs += 59_999;
  const inUse = ids.slice(0, 100);
  for (const id of inUse) partners.peek(id);
  clock.nowMs += 60_000 - 59_998;
  partners.peek(newId<"partner">());
  expect(partners.count).toBe(inUse.length + 1);
});

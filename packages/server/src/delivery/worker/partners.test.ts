import { expect, test } from "vitest";
import { ServiceError } from "../../errors.ts";
import { newId, type PartnerId } from "../../ids.ts";
import { partnerSnapshot } from "../../partners/partner.fixture.ts";
import type { Partner } from "../../partners/partner.ts";
import { DeliveryPartners } from "./partners.ts";

const broken = new Error("the key cannot be opened");
const settled = () => new Promise((resolve) => setImmediate(resolve));

/** Delivery's partners over a directory whose answers the test gives. */
function partnersOver(answer: (id: PartnerId) => Promise<Partner | undefined> = async () => undefined) {
  const over = {
    nowMs: 0,
    answer,
    known: new Map<PartnerId, Partner>(),
    tellsChange: (_: PartnerId): void => undefined,
  };
  const [requested, changed]: PartnerId[][] = [[], []];
  const unreadable: (readonly [PartnerId, unknown])[] = [];
  const partners = new DeliveryPartners({
    directory: {
      cached: (id) => over.known.get(id),
      find: (id) => {
        requested?.push(id);
        return over.answer(id);
      },
      watch: (onChanged) => {
        over.tellsChange = onChanged;
      },
    },
    clock: { monotonicMs: () => over.nowMs },
    onUnreadable: (id, error) => unreadable.push([id, error]),
  });
  partners.start((id) => changed?.push(id));
  /** Looks it up at that moment, and lets the request that follows end. */
  const lookUp = async (id: PartnerId, atMs: number) => {
    over.nowMs = atMs;
    const partner = partners.cached(id);
    await settled();
    return partner;
  };
  return { over, requested, changed, unreadable, lookUp };
}

test("a known partner is used at once, and not requested", async () => {
  const { over, requested, lookUp } = partnersOver();
  const partner = partnerSnapshot();
  over.known.set(partner.id, partner);
  expect(await lookUp(partner.id, 0)).toBe(partner);
  expect(requested).toEqual([]);
});

test("an unknown partner is requested each half second at most, however often it is looked up", async () => {
  const { requested, changed, lookUp } = partnersOver();
  const [id, other] = [newId<"partner">(), newId<"partner">()];
  for (const atMs of [0, 1, 499, 500, 999]) expect(await lookUp(id, atMs)).toBeUndefined();
  expect(requested).toEqual([id, id]);
  await lookUp(other, 999);
  expect(requested).toEqual([id, id, other]);
  expect(changed).toEqual([]);
});

test("a requested partner is named when it arrives, and requested at once when it is too old later", async () => {
  const partner = partnerSnapshot();
  const arriving = Promise.withResolvers<Partner>();
  const { over, requested, changed, lookUp } = partnersOver(() => arriving.promise);
  await lookUp(partner.id, 0);
  expect(changed).toEqual([]);
  arriving.resolve(partner);
  await settled();
  expect(changed).toEqual([partner.id]);
  over.known.set(partner.id, partner);
  await lookUp(partner.id, 100);
  over.known.clear();
  await lookUp(partner.id, 200);
  expect(requested).toEqual([partner.id, partner.id]);
});

test("the changes of the directory are passed on", () => {
  const { over, changed } = partnersOver();
  const id = newId<"partner">();
  over.tellsChange(id);
  expect(changed).toEqual([id]);
});

test("a partner whose keys cannot be read is reported once an hour, however often it is looked up", async () => {
  const { unreadable, changed, lookUp } = partnersOver(() => Promise.reject(broken));
  const id = newId<"partner">();
  for (const atMs of [0, 500, 1_000, 3_599_999]) await lookUp(id, atMs);
  expect(unreadable).toEqual([[id, broken]]);
  await lookUp(id, 3_600_500);
  expect(unreadable).toHaveLength(2);
  expect(changed).toEqual([]);
});

test("a partner that was repaired and cannot be read again is reported again", async () => {
  const partner = partnerSnapshot();
  const { over, unreadable, changed, lookUp } = partnersOver(() => Promise.reject(broken));
  await lookUp(partner.id, 0);
  over.answer = async () => partner;
  await lookUp(partner.id, 500);
  expect(changed).toEqual([partner.id]);
  over.answer = () => Promise.reject(broken);
  await lookUp(partner.id, 1_000);
  expect(unreadable).toHaveLength(2);
});

test("other partners are served meanwhile, and each unreadable one is reported separately", async () => {
  const good = partnerSnapshot();
  const [bad, worse] = [newId<"partner">(), newId<"partner">()];
  const { unreadable, changed, lookUp } = partnersOver(async (id) => {
    if (id === good.id) return good;
    throw broken;
  });
  for (const id of [bad, good.id, worse]) await lookUp(id, 0);
  expect(changed).toEqual([good.id]);
  expect(unreadable.map(([id]) => id)).toEqual([bad, worse]);
});

test("a database outage is not reported as a partner's problem", async () => {
  const { requested, unreadable, lookUp } = partnersOver(() =>
    Promise.reject(new ServiceError("unavailable", undefined, { retryAfterS: 2 })),
  );
  const id = newId<"partner">();
  for (const atMs of [0, 500]) await lookUp(id, atMs);
  expect(requested).toEqual([id, id]);
  expect(unreadable).toEqual([]);
});

import { pino } from "pino";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { newId } from "../ids.ts";
import type { Partner } from "../partners/partner.ts";
import { Admission } from "./admission.ts";
import { claimedOf } from "./claimed.fixture.ts";
import { Claims } from "./claims.ts";
import type { Claimed, ClaimLimits } from "./store.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const partnerId = newId<"partner">();

async function started(maxInFlight = 2) {
  const settings = { maxInFlight, maxPerSecond: null };
  const admission = new Admission({
    directory: { peek: (id) => ({ id, settings }) as unknown as Partner },
    slotsMax: 512,
    bytesInFlightMax: 1_000,
    nowMs: () => performance.now(),
  });
  const asked: ClaimLimits[] = [];
  const taken: Claimed[] = [];
  const due: Claimed[] = [];
  const claims = new Claims({
    store: {
      claim: (_, limits) => {
        asked.push(limits);
        return Promise.resolve(due.splice(0, limits.rowsMaxOf?.get(partnerId) ?? limits.rowsPerPartnerMax));
      },
    },
    lease: { current: () => ({ id: newId<"instance">(), epoch: 1 }) },
    admission,
    log: pino({ level: "silent" }),
    probeLeaseMs: 1_000,
    unrecordedFree: () => 1_000,
    onClaimed: (claimed) => {
      admission.place(claimed.partnerId, claimed.content.length);
      taken.push(claimed);
    },
    onRefused: () => expect.unreachable(),
  });
  claims.start();
  await vi.advanceTimersByTimeAsync(1);
  expect(asked.splice(0)).toHaveLength(1);
  return { admission, claims, asked, taken, due };
}

test("a partner without room is not claimed for until it gives a place back, and then for what has room", async () => {
  const { admission, claims, asked, taken, due } = await started();
  const place = admission.place(partnerId, 1) ?? expect.unreachable();
  admission.place(partnerId, 1);
  due.push(claimedOf(partnerId), claimedOf(partnerId), claimedOf(partnerId));
  claims.wakeFor(partnerId);
  await vi.advanceTimersByTimeAsync(500);
  expect(asked).toEqual([]);
  admission.leave(place, true);
  claims.placeGiven(partnerId);
  await vi.advanceTimersByTimeAsync(50);
  expect(asked).toHaveLength(1);
  // One that has room, and one ahead.
  expect(taken).toHaveLength(2);
  expect(claims.hasBacklogOf(partnerId)).toBe(true);
});

test("a partner that gave its whole share, and has room for more, is claimed for again at once", async () => {
  const { claims, asked, taken, due } = await started(100);
  due.push(...Array.from({ length: 90 }, () => claimedOf(partnerId)));
  claims.wakeFor(partnerId);
  await vi.advanceTimersByTimeAsync(100);
  expect(taken).toHaveLength(90);
  expect(asked).toHaveLength(3);
});

test("a partner that brought less than its share has no backlog any more", async () => {
  const { claims, asked, taken, due } = await started();
  due.push(claimedOf(partnerId));
  claims.wakeFor(partnerId);
  expect(claims.hasBacklogOf(partnerId)).toBe(true);
  await vi.advanceTimersByTimeAsync(50);
  expect([asked.length, taken.length]).toEqual([1, 1]);
  expect(claims.hasBacklogOf(partnerId)).toBe(false);
});

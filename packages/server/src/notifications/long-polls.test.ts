import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { newId, nilId, type PartnerId } from "../ids.ts";
import { LongPolls } from "./long-polls.ts";
import type { Following, HistoryPosition } from "./store.ts";

const [first, second] = [newId<"partner">(), newId<"partner">()] as const;
const after = { xid: 7n, id: nilId };

beforeEach(() => {
  vi.useFakeTimers();
});

afterEach(() => {
  vi.useRealTimers();
});

function bench(waitingMax = 100) {
  const looks: PartnerId[][] = [];
  const stands = new Map<PartnerId, Following>();
  const database = {
    following: async (places: readonly HistoryPosition[]) => places.map(({ partnerId }) => of(partnerId)),
  };
  const of = (partnerId: PartnerId): Following => stands.get(partnerId) ?? "nothing";
  const following = async (places: readonly HistoryPosition[]) => {
    looks.push(places.map(({ partnerId }) => partnerId));
    return database.following(places);
  };
  const arrivals = new LongPolls({ store: { following }, waitingMax });
  const wait = (partnerId: PartnerId, durationMs = 30_000) => {
    const gone = new AbortController();
    return { gone, ended: arrivals.wait(partnerId, after, { durationMs, signal: gone.signal }) };
  };
  return { arrivals, looks, stands, database, wait };
}

/** Waits for everything that happens within this time. */
async function passes(ms: number): Promise<void> {
  await vi.advanceTimersByTimeAsync(ms);
}

test("callers that wait learn of writes by this instance at once, and by another within a tick", async () => {
  const { arrivals, stands, wait } = bench();
  const [told, found] = [wait(first), wait(second)];
  await passes(100);
  stands.set(first, "visible").set(second, "visible");
  arrivals.notify(first);
  await passes(10);
  expect(await told.ended).toBe(true);
  expect(arrivals.waiting).toBe(1);
  await passes(250);
  expect(await found.ended).toBe(true);
  expect(arrivals.waiting).toBe(0);
});

test("a write between the page and the wait is found", async () => {
  const { stands, wait } = bench();
  stands.set(first, "visible");
  const { ended } = wait(first);
  await passes(1);
  expect(await ended).toBe(true);
});

test("a write that is not visible yet is read again soon, less and less often, and then with all others", async () => {
  const { arrivals, looks, stands, wait } = bench();
  const { ended } = wait(first);
  await passes(100);
  stands.set(first, "not_visible");
  looks.length = 0;
  arrivals.notify(first);
  await passes(100);
  const inAHundredMs = looks.length;
  expect(inAHundredMs).toBeGreaterThanOrEqual(4);
  await passes(10_000);
  expect(looks.length - inAHundredMs).toBeLessThanOrEqual(45);
  stands.set(first, "visible");
  await passes(250);
  expect(await ended).toBe(true);
});

test("however many wait and however much is written, one read at a time serves all of them", async () => {
  const { arrivals, looks, database, wait } = bench();
  const everybody = Array.from({ length: 50 }, () => newId<"partner">()).map((id) => wait(id, 1_000));
  await passes(1);
  expect(looks.map(({ length }) => length)).toEqual([50]);
  await passes(999);
  expect(looks.map(({ length }) => length)).toEqual([50, 50, 50, 50]);
  expect(await Promise.all(everybody.map(({ ended }) => ended))).toEqual(Array.from({ length: 50 }, () => true));

  const one = wait(first, 1_000);
  await passes(20);
  looks.length = 0;
  const slow = Promise.withResolvers<void>();
  database.following = async (places) => {
    await slow.promise;
    return places.map(() => "nothing" as const);
  };
  for (let i = 0; i < 1_000; i += 1) arrivals.notify(first);
  await passes(200);
  for (let i = 0; i < 1_000; i += 1) arrivals.notify(first);
  expect(looks).toHaveLength(1);
  slow.resolve();
  await passes(20);
  expect(looks).toHaveLength(2);
  await passes(1_000);
  await one.ended;
});

test("nothing is read while nobody waits", async () => {
  const { arrivals, looks, wait } = bench();
  arrivals.notify(first);
  const { ended } = wait(first, 100);
  await passes(100);
  await ended;
  const before = looks.length;
  arrivals.notify(first);
  await passes(10_000);
  expect(looks).toHaveLength(before);
});

test("callers are bounded, per partner and in all, and the next one is refused with a Retry-After", async () => {
  const { arrivals, wait } = bench(20);
  const own = Array.from({ length: 16 }, () => wait(first));
  await expect(wait(first).ended).rejects.toMatchObject({ code: "too_many_requests", retryAfterS: 5 });
  const others = Array.from({ length: 4 }, () => wait(second));
  await expect(wait(newId<"partner">()).ended).rejects.toMatchObject({ code: "too_many_requests", retryAfterS: 5 });
  expect(arrivals.waiting).toBe(20);
  others[0]?.gone.abort();
  await others[0]?.ended;
  const next = wait(second);
  for (const { gone } of [...own, ...others, next]) gone.abort();
  await Promise.all([...own, ...others, next].map(({ ended }) => ended));
  expect(arrivals.waiting).toBe(0);
});

test("a caller that disconnected, or that a stop ends, causes no further read", async () => {
  const { arrivals, wait } = bench();
  const [leaves, stays] = [wait(first), wait(second)];
  leaves.gone.abort();
  expect(await leaves.ended).toBe(false);
  arrivals.stop();
  expect(await stays.ended).toBe(false);
  expect(await wait(first).ended).toBe(false);
});

test("a failed read refuses the callers that wait, and the next ones read again", async () => {
  const { stands, database, wait } = bench();
  const { following } = database;
  database.following = () => Promise.reject(new Error("away"));
  const refused = expect(wait(first).ended).rejects.toMatchObject({ code: "unavailable" });
  await passes(1);
  await refused;
  database.following = following;
  stands.set(first, "visible");
  const { ended } = wait(first);
  await passes(10);
  expect(await ended).toBe(true);
});

test("the last caller leaves no timer behind: this file would fail for a timer left open", async () => {
  vi.useRealTimers();
  const { arrivals, wait } = bench();
  await Promise.all([wait(first, 1).ended, wait(second, 1).ended]);
  arrivals.notify(first);
  expect(arrivals.waiting).toBe(0);
});

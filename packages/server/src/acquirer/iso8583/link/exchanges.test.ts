import { afterEach, expect, test } from "vitest";
import { NoAnswer } from "../../acquirer.ts";
import type { IsoMessage } from "../message/codec.ts";
import { Exchanges, type MatchLock, MatchLocks } from "./exchanges.ts";

test("an answer goes to a repeat that is still known, past those that are too long ago", async () => {
  let nowMs = 0;
  const exchanges = new Exchanges({ monotonicMs: () => nowMs, nowMs: () => nowMs });
  const late: string[] = [];
  const answer: IsoMessage = { mti: "0410", fields: new Map() };
  for (const [key, name] of [
    ["one key", "first"],
    ["one key", "repeat"],
    ["another", "other"],
  ] as const) {
    nowMs += 310_000;
    const onLateAnswer = () => late.push(name);
    const { answer: ended } = exchanges.open(key, { timeoutMs: 60_000, owner: exchanges, onLateAnswer });
    exchanges.giveUp(exchanges, "the connection broke");
    await expect(ended).rejects.toBeInstanceOf(NoAnswer);
  }
  expect(exchanges.settle("one key", answer)).toBe("settled");
  expect(exchanges.settle("one key", answer)).toBe("repeated");
  expect(exchanges.settle("one key", { ...answer, mti: "0411" })).toBe("unknown");
  expect(late).toEqual(["repeat"]);
});

test("of ten thousand requests that gave up the oldest is forgotten for one more", async () => {
  const exchanges = new Exchanges({ monotonicMs: () => 0, nowMs: () => 0 });
  const late: string[] = [];
  for (let nth = 0; nth <= 10_000; nth += 1) {
    const onLateAnswer = () => late.push(`${nth}`);
    exchanges.open(`${nth}`, { timeoutMs: 60_000, owner: exchanges, onLateAnswer }).answer.catch(() => undefined);
    exchanges.giveUp(exchanges, "the connection broke");
  }
  for (const key of ["0", "1", "10000"]) exchanges.settle(key, { mti: "0210", fields: new Map() });
  expect(late).toEqual(["1", "10000"]);
});

const patientMs = 600_000;
const opened: MatchLocks[] = [];
afterEach(() => {
  for (const locks of opened.splice(0)) locks.close();
});

function locksOf(oneAtATime = false) {
  const locks = new MatchLocks({ oneAtATime });
  opened.push(locks);
  const order: string[] = [];
  /** Locks it, and notes when it is there. */
  async function lock(key: string, request: string, waitMs = patientMs): Promise<MatchLock | undefined> {
    const locked = await locks.lock(key, request, waitMs);
    if (locked !== undefined) order.push(request);
    return locked;
  }
  return { locks, order, lock };
}

test("different requests under one key come one after the other, and a repeat shares its key", async () => {
  const { order, lock } = locksOf();
  const [first, repeat] = [await lock("key", "sale 1"), await lock("key", "sale 1")];
  const second = lock("key", "sale 2");
  const third = lock("key", "sale 3");
  await lock("other key", "sale 4");
  first?.release();
  first?.release();
  await Promise.resolve();
  expect(order).toEqual(["sale 1", "sale 1", "sale 4"]);
  repeat?.release();
  (await second)?.release();
  await third;
  expect(order.slice(3)).toEqual(["sale 2", "sale 3"]);
});

test("a request gets no lock if it waits too long, or when the link is closed", async () => {
  const { locks, lock } = locksOf();
  await lock("key", "sale 1");
  expect(await lock("key", "sale 2", 1)).toBeUndefined();
  const waiting = lock("key", "sale 3");
  locks.close();
  expect(await waiting).toBeUndefined();
});

test("the key of an unanswered request is free when no answer can come, or has come late", async () => {
  const { order, lock } = locksOf();
  (await lock("key", "sale 1"))?.releaseUnanswered(1);
  await lock("key", "sale 2").then((locked) => {
    locked?.releaseUnanswered(patientMs);
    setImmediate(() => locked?.release());
  });
  await lock("key", "sale 3");
  expect(order).toEqual(["sale 1", "sale 2", "sale 3"]);
});

test("one at a time, none is sent while a request of an earlier process may be answered", async () => {
  const { locks, order, lock } = locksOf(true);
  locks.lockAll(patientMs);
  expect(await lock("key", "sale 1", 1)).toBeUndefined();
  locks.lockAll(1);
  (await lock("key", "sale 2"))?.release();
  expect(order).toEqual(["sale 2"]);
});

test("one at a time, requests exclude each other under any key while they are waited for", async () => {
  const { order, lock } = locksOf(true);
  const first = await lock("key 1", "sale 1");
  const second = lock("key 2", "sale 2");
  await Promise.resolve();
  expect(order).toEqual(["sale 1"]);
  first?.releaseUnanswered(patientMs);
  (await second)?.release();
  expect(await lock("key 1", "sale 3", 1)).toBeUndefined();
});

import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { NotificationId, PartnerId } from "../../ids.ts";
import type { Delivery } from "../delivery.ts";
import type { QueuePage, QueuePosition } from "../store.ts";
import { Memory } from "./memory.ts";
import { Queue } from "./queue.ts";

const never = () => false;

function deliveryOf(number: number, changes: Partial<Delivery> = {}): Delivery {
  return {
    partnerId: "partner" as PartnerId,
    id: `n${String(number).padStart(3, "0")}` as NotificationId,
    queue: "",
    round: 0,
    attemptsMade: 0,
    scheduleStartMs: number,
    chainId: "chain",
    follows: false,
    settlesBatch: null,
    toRegistered: false,
    transactionId: null,
    originalId: null,
    command: "SALE",
    callBackUrl: null,
    content: "{}",
    bytes: 2,
    ...changes,
  } as Delivery;
}

function pageOf(deliveries: readonly Delivery[], rest: Partial<QueuePage> = {}): QueuePage {
  const due = deliveries.map((delivery) => ({ dueAtUs: delivery.scheduleStartMs * 1_000, id: delivery.id, delivery }));
  return { due, hasMore: false, nextInMs: undefined, ...rest };
}

function newQueue(rowsMax = 4): Queue {
  const queue = new Queue("partner" as PartnerId, "", new Memory<Queue>());
  queue.rowsMax = rowsMax;
  return queue;
}

function isAfter({ scheduleStartMs, id }: Delivery, after: QueuePosition | undefined): boolean {
  if (after === undefined) return true;
  const dueAtUs = scheduleStartMs * 1_000;
  return dueAtUs > after.dueAtUs || (dueAtUs === after.dueAtUs && id > after.id);
}

/** Reads as long as the queue wants to, from these rows. */
function readAll(queue: Queue, database: readonly Delivery[], nowMs: number): void {
  for (let reads = 0; reads < 50; reads += 1) {
    const wanted = queue.wants(nowMs);
    if (wanted === undefined) return;
    queue.readBegins(wanted, nowMs);
    const rest = database.filter((delivery) => isAfter(delivery, wanted.after));
    const hasMore = rest.length > wanted.rowsMax;
    queue.readEnds(pageOf(rest.slice(0, wanted.rowsMax), { hasMore }), nowMs, never);
  }
}

describe("a queue", () => {
  test("never exceeds its bound although a page has more: the rest is read again", () => {
    const queue = newQueue(4);
    queue.wake();
    queue.readBegins({ after: undefined, rowsMax: 4 }, 0);
    queue.rowsMax = 2;
    queue.readEnds(pageOf([1, 2, 3].map((number) => deliveryOf(number))), 0, never);
    expect(queue.rows).toBe(2);
    expect(queue.hasMore).toBe(true);
    queue.rowsMax = 4;
    for (const delivery of [queue.startHead(), queue.startHead()]) if (delivery) queue.release(delivery, 0);
    expect(queue.wants(0)?.after?.id).toBe("n002");
  });

  test("reads deliveries that it did not keep by reading on, from before them if the cursor is beyond", () => {
    const queue = newQueue(1);
    const [early, kept, late] = [deliveryOf(1), deliveryOf(2), deliveryOf(3)];
    queue.wake();
    queue.readBegins({ after: undefined, rowsMax: 1 }, 0);
    // Committed while the read ran, which may not include it.
    expect(queue.offer(late)).toBe(false);
    queue.readEnds(pageOf([kept]), 0, never);
    expect(queue.offer(early)).toBe(false);
    queue.startHead();
    queue.release(kept, 0);
    queue.rowsMax = 4;
    expect(queue.wants(0)?.after?.dueAtUs).toBe(999);
    readAll(queue, [early, late], 0);
    expect([queue.has(early.id), queue.has(late.id), queue.hasMore]).toEqual([true, true, false]);
  });

  test("keeps hinted deliveries while it waits to read from the head, and leaves half of its rows to that read", () => {
    const queue = newQueue(4);
    queue.offer(deliveryOf(1));
    queue.missed();
    expect(queue.offer(deliveryOf(2))).toBe(true);
    expect(queue.offer(deliveryOf(3))).toBe(false);
  });

  test("reads from the head if a delivery in memory was read with a later due time, beyond the cursor", () => {
    const queue = newQueue();
    const [postponed, later] = [deliveryOf(1, { follows: true }), deliveryOf(9)];
    queue.offer(postponed);
    // Its put-off is committed, and due; the answer has not arrived yet.
    queue.wake();
    queue.readBegins({ after: undefined, rowsMax: 4 }, 0);
    const page = [
      { dueAtUs: 5_000, id: postponed.id, delivery: postponed },
      { dueAtUs: 9_000, id: later.id, delivery: later },
    ];
    queue.readEnds({ due: page, hasMore: false, nextInMs: undefined }, 0, never);
    expect(queue.hasMore).toBe(false);
    queue.release(postponed, 1, 0);
    const readOn = queue.wants(2);
    expect(readOn?.after?.id).toBe(later.id);
    if (readOn !== undefined) queue.readBegins(readOn, 2);
    queue.readEnds(pageOf([]), 2, never);
    expect(queue.wants(3)).toMatchObject({ after: undefined });
  });

  test("rests after a read from the head that found nothing, and not after one that did", () => {
    const queue = newQueue();
    queue.wake();
    queue.readBegins({ after: undefined, rowsMax: 4 }, 0);
    queue.readEnds(pageOf([deliveryOf(1)]), 100, never);
    queue.missed();
    expect(queue.wants(101)?.after).toBeUndefined();
    expect(queue.wants(101)).toBeDefined();
    queue.readBegins({ after: undefined, rowsMax: 4 }, 101);
    queue.readEnds(pageOf([deliveryOf(1)]), 201, never);
    queue.missed();
    expect(queue.wants(202)).toBeUndefined();
    expect(queue.wants(1_201)).toBeDefined();
  });

  test("reads again what it forgot while a read was running", () => {
    const queue = newQueue();
    const [first, second] = [deliveryOf(1), deliveryOf(2)];
    expect(queue.offer(first)).toBe(true);
    queue.readBegins({ after: { dueAtUs: 1_000, id: first.id }, rowsMax: 4 }, 0);
    expect(queue.forgetReady()).toEqual([first]);
    queue.readEnds(pageOf([second]), 0, never);
    readAll(queue, [first, second], 1);
    expect(queue.has(first.id)).toBe(true);
  });

  test("releases only the very delivery, and not a later reading of the same notification", () => {
    const queue = newQueue();
    const [earlier, later] = [deliveryOf(1), deliveryOf(1)];
    queue.offer(later);
    queue.release(earlier, 0);
    expect(queue.has(later.id)).toBe(true);
    queue.release(later, 0);
    expect([queue.has(later.id), queue.head]).toEqual([false, undefined]);
  });

  test("reads from its head again what it forgot, on after it while few are ready, and a row without content never", () => {
    const queue = newQueue(4);
    const rows = [1, 2, 3, 4].map((number) => deliveryOf(number));
    queue.wake();
    queue.readBegins({ after: undefined, rowsMax: 4 }, 0);
    const gone = { dueAtUs: 9_000, id: "gone" as NotificationId, delivery: undefined };
    queue.readEnds({ ...pageOf(rows), due: [...pageOf(rows.slice(0, 3)).due, gone], hasMore: true }, 0, never);
    expect(queue.wants(0)).toBeUndefined();
    queue.startHead();
    expect(queue.wants(0)).toEqual({ after: { dueAtUs: 9_000, id: "gone" }, rowsMax: 1 });
    queue.forgetReady();
    expect(queue.wants(0)).toEqual({ after: undefined, rowsMax: 3 });
  });

  test("adopts a row only if there is room for it", () => {
    const queue = newQueue(1);
    expect([1, 1, 2].map((nth) => queue.adopt(deliveryOf(nth), 0))).toEqual([true, false, false]);
  });

  test("sends a held delivery once, however often it may leave", () => {
    const queue = newQueue();
    const follower = deliveryOf(1, { follows: true });
    queue.offer(follower);
    queue.makeReady(follower);
    expect(queue.startHead()).toBe(follower);
    queue.makeReady(follower);
    expect(queue.head).toBeUndefined();
  });

  test("sends what was held before what came after it", () => {
    const queue = newQueue();
    const follower = deliveryOf(1, { follows: true });
    for (const delivery of [follower, deliveryOf(2)]) queue.offer(delivery);
    queue.makeReady(follower);
    expect(queue.startHead()).toBe(follower);
  });

  test("reads from the head if another round of a delivery in flight was read", () => {
    const queue = newQueue();
    const first = deliveryOf(1);
    queue.offer(first);
    queue.startHead();
    queue.wake();
    readAll(queue, [deliveryOf(1, { round: 1 })], 0);
    expect(queue.hasMore).toBe(false);
    queue.release(first, 0);
    expect(queue.wants(1_000)?.after).toBeUndefined();
    readAll(queue, [deliveryOf(1, { round: 1 })], 1_000);
    expect(queue.head?.round).toBe(1);
  });

  const event = fc.constantFrom("hinted", "late", "woken", "told since", "send", "forget", "read");

  test.each([
    [30, 300],
    [7_000, 5_000],
  ])("rests after a read from its head that took %i ms and brought nothing for %i ms", (tookMs, restMs) => {
    const queue = newQueue();
    queue.wake();
    queue.readBegins({ after: undefined, rowsMax: 4 }, 0);
    queue.missed();
    queue.readEnds(pageOf([]), tookMs, never);
    expect(queue.coolsUntilMs).toBe(tookMs + restMs);
  });

  test("has every due delivery in memory when it calls itself complete", () => {
    fc.assert(
      fc.property(fc.array(event, { maxLength: 60 }), fc.integer({ min: 1, max: 5 }), (events, rowsMax) => {
        const queue = newQueue(rowsMax);
        let database: readonly Delivery[] = [];
        for (const [at, step] of events.entries()) {
          database = afterStep(queue, database, step, at * 10);
          expect(queue.rows).toBeLessThanOrEqual(rowsMax);
          const missing = database.filter(({ id }) => !queue.has(id));
          if (!queue.hasMore) expect(missing).toEqual([]);
        }
      }),
    );
  });
});

/** @returns the database's rows after the step */
function afterStep(queue: Queue, database: readonly Delivery[], step: string, nowMs: number): readonly Delivery[] {
  const sent = step === "send" ? queue.startHead() : undefined;
  if (sent !== undefined) queue.release(sent, nowMs);
  if (step === "forget") queue.forgetReady();
  if (step === "read") readAll(queue, database, nowMs);
  if (!["hinted", "late", "woken", "told since"].includes(step)) return database.filter(({ id }) => id !== sent?.id);
  // A late commit was due before others that were read meanwhile.
  const delivery = deliveryOf(step === "late" ? Math.max(0, nowMs - 55) : nowMs);
  if (step === "hinted") queue.offer(delivery);
  else queue.wake(step === "told since" ? delivery.scheduleStartMs : undefined);
  return [...database, delivery].sort((one, other) => (one.id < other.id ? -1 : 1));
}

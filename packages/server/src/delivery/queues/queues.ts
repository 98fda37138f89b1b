import type { Clock, Timers } from "../../clock.ts";
import { homeOf, type NotificationId, type PartnerId, shardOf } from "../../ids.ts";
import type { Delivery, QueueKey } from "../delivery.ts";
import type { DeliveryStore, QueueHead, QueuePage, QueueRead } from "../store.ts";
import { attemptNumber, Memory, RecentOutcomes } from "./memory.ts";
import { DeliveryOrder } from "./order.ts";
import { isFollowing, Queue, type QueueLimits, type WantedRead } from "./queue.ts";

export interface QueuesParts {
  readonly store: Pick<DeliveryStore, "read" | "scan" | "heads" | "preceding" | "postpone">;
  readonly homes: number;
  readonly clock: Pick<Clock, "monotonicMs">;
  readonly timers: Timers;
  /**
   * Deliveries in memory, of all queues, and their content. Beyond it a queue may still have a few, so that stuck
   * queues do not block the others; beyond twice as much, one of each partner.
   */
  readonly rowsMax: number;
  readonly bytesMax: number;
  /** The bounds of a partner's queue, and whether it is read. */
  readonly limitsOf: (partnerId: PartnerId) => QueueLimits;
  /** When its endpoint accepts deliveries: now, at a moment, or (undefined) after a change. */
  readonly readableAtMs: (key: QueueKey) => number | undefined;
  /** The queue has something to send. */
  readonly onReady: (queue: Queue) => void;
  readonly onTrouble: (message: string, error: unknown) => void;
}

/** The reads of one home, and the order of its deliveries. */
interface Reader {
  readonly order: DeliveryOrder;
  readonly wanting: Set<Queue>;
  isReading: boolean;
  /** When the statement that is reading now was sent; otherwise Infinity. */
  sinceMs: number;
  /** The same, of `scan`. */
  scansSinceMs: number;
}

const minRows = 4;
/** A hint usually arrives within this time. Rows that became due since are left to it, and to the next sweep. */
const hintMs = 500;
/** Rows due later than that are read by then, because the platform's timers end at 24 days. */
const timerMaxMs = 86_400_000;
const readsMax = 64;
const readRowsMax = 512;
/** The bound of one page: a settlement of 50,000 entries is 3.6 MB. */
const pageBytesMax = 4 * 1_024 * 1_024;
/** A page of small deliveries has as many rows as requested, and one of large ones at most this many bytes per row. */
const bytesPerRow = 8 * 1_024;
const retryMs = 250;
/** Outcomes are remembered at least this long: twice the maximum age of an offered delivery. */
const endedKeptMs = 10_000;

/**
 * The queues of the partners whose shards a worker owns. It fills them by hints, by reads, and by the sweep, which
 * finds everything that hints missed. In each home, one read statement at a time serves all queues that run low.
 */
export class Queues {
  readonly #parts: QueuesParts;
  readonly #partners = new Map<PartnerId, Map<string, Queue>>();
  readonly #memory = new Memory<Queue>();
  /** Recorded attempts, for reads whose snapshot is older. */
  readonly #ended = new RecentOutcomes(endedKeptMs);
  /** Attempts whose outcome could not be stored: they are not read again for a while. */
  readonly #resting = new Map<NotificationId, Delivery>();
  /** Redelivered to another queue while an earlier round is still in memory: read again after that one. */
  readonly #moved = new Map<NotificationId, QueueKey>();
  readonly #readers: readonly Reader[];
  readonly #timers = new Map<Queue, { atMs: number; cancel: () => void }>();
  #isStopped = false;

  constructor(parts: QueuesParts) {
    this.#parts = parts;
    const { store, clock, timers, onTrouble } = parts;
    const onOrderTrouble = (error: unknown) => onTrouble("the order of notifications could not be read", error);
    this.#readers = Array.from({ length: parts.homes }, () => ({
      order: new DeliveryOrder({ store, clock, timers, queues: this, onTrouble: onOrderTrouble }),
      wanting: new Set(),
      isReading: false,
      sinceMs: Infinity,
      scansSinceMs: Infinity,
    }));
  }

  /** Deliveries in memory. */
  get rows(): number {
    return this.#memory.rows;
  }

  /** The size of their content. */
  get bytes(): number {
    return this.#memory.bytes;
  }

  has(id: NotificationId): boolean {
    return this.#memory.find(id) !== undefined;
  }

  /** The reading of it that is in memory. */
  find(id: NotificationId): Delivery | undefined {
    return this.#memory.find(id)?.delivery;
  }

  /** Whether this very delivery is in memory, and not another round or reading of it. */
  holds(delivery: Delivery): boolean {
    return this.#memory.findExact(delivery) !== undefined;
  }

  /** Whether it leaves before an earlier one was accepted or parked. */
  isOutOfOrder(delivery: Delivery): boolean {
    return this.#readerOf(delivery).order.isOutOfOrder(delivery.id);
  }

  /** Adds a delivery that was just made durable. If there is no room, it is read later. */
  offer(delivery: Delivery): void {
    if (this.has(delivery.id) || this.#isStale(delivery)) return;
    const queue = this.#inUse(delivery);
    if (queue.offer(delivery)) this.#added(queue, [delivery]);
    this.#consider(queue);
  }

  /** Something of the queue is due that is not in memory. @param sinceMs since when, if known */
  wake(key: QueueKey, sinceMs?: number): void {
    const queue = this.#inUse(key);
    queue.wake(sinceMs);
    this.#consider(queue);
  }

  /** The partner's settings, state or circuits have changed: its queues may read now. */
  reconsider(partnerId: PartnerId): void {
    for (const queue of this.queuesOf(partnerId)) {
      this.#consider(queue);
      this.#added(queue, []);
    }
  }

  /** Removes the head for sending. */
  startHead(queue: Queue): Delivery | undefined {
    const delivery = queue.startHead();
    this.#consider(queue);
    return delivery;
  }

  /** A following delivery may be sent. */
  makeReady(delivery: Delivery): void {
    const queue = this.#memory.findExact(delivery)?.queue;
    if (queue === undefined) return;
    queue.makeReady(delivery);
    this.#parts.onReady(queue);
  }

  /** The outcome of an attempt is recorded. @param againInMs until it is due again; undefined: it is over */
  ended(delivery: Delivery, recorded: "applied" | "missed", againInMs?: number): void {
    this.#forgetEnded(this.#parts.clock.monotonicMs());
    this.#ended.add(delivery);
    if (recorded === "missed") this.#memory.find(delivery.id)?.queue.missed();
    this.release(delivery, againInMs);
  }

  /** Releases a delivery that may be due as before: it is behind the cursor, so only a read from the head finds it. */
  releaseUnchanged(delivery: Delivery): void {
    this.#memory.findExact(delivery)?.queue.missed();
    this.release(delivery);
  }

  /** Releases a delivery. An earlier reading of a row that was read again changes nothing. */
  release(delivery: Delivery, againInMs?: number): void {
    const queue = this.#memory.findExact(delivery)?.queue;
    if (queue === undefined) return;
    queue.release(delivery, this.#parts.clock.monotonicMs(), againInMs);
    this.#released([delivery]);
    this.#consider(queue);
  }

  rests(id: NotificationId): boolean {
    return this.#resting.has(id);
  }

  /**
   * Releases a delivery that is due as before, and does not read it again for this long. Its queue continues without
   * it.
   */
  rest(delivery: Delivery, forMs: number): void {
    const { id, partnerId } = delivery;
    this.#resting.set(id, delivery);
    this.release(delivery);
    this.#parts.timers.after(forMs, () => {
      if (this.#resting.get(id) === delivery) this.#resting.delete(id);
      // An existing queue is woken; a closed one is opened if it may be read.
      if (this.#partners.has(partnerId) || this.#parts.limitsOf(partnerId).mayRead) this.wake(delivery);
    });
  }

  /** Their endpoint or their partner accepts nothing now: these waiting deliveries are read again when it does. */
  forgetReady(queue: Queue, which?: (delivery: Delivery) => boolean): void {
    this.#released(queue.forgetReady(which));
    this.#consider(queue);
  }

  /** Reads a page of a queue that is not read now. */
  async scan(read: Omit<QueueRead, "bytesMax">): Promise<QueuePage> {
    const reader = this.#readerOf(read);
    reader.scansSinceMs = this.#parts.clock.monotonicMs();
    try {
      return await this.#parts.store.scan(read);
    } finally {
      reader.scansSinceMs = Infinity;
    }
  }

  /** Keeps rows of a page of `scan`, as far as there is room. */
  adopt(key: QueueKey, found: QueuePage["due"]): void {
    const queue = this.#inUse(key);
    const added = found.flatMap(({ delivery, dueAtUs }) => {
      if (delivery === undefined || this.#isStale(delivery)) return [];
      return queue.adopt(delivery, Math.floor(dueAtUs / 1_000)) ? [delivery] : [];
    });
    this.#added(queue, added);
    this.#consider(queue);
  }

  /** The worker no longer owns the partner. */
  forgetPartner(partnerId: PartnerId): void {
    const queues = this.#partners.get(partnerId);
    if (queues === undefined) return;
    this.#partners.delete(partnerId);
    for (const queue of queues.values()) this.#detach(queue);
  }

  partners(): readonly PartnerId[] {
    return [...this.#partners.keys()];
  }

  queuesOf(partnerId: PartnerId): readonly Queue[] {
    return [...(this.#partners.get(partnerId)?.values() ?? [])];
  }

  /**
   * Reads the head of each queue of these shards. @param leavesRecent leaves recently due rows to their hint, which is
   * still on the way; false if no hint comes, or one requested this sweep @returns the heads
   */
  async sweep(
    shards: readonly number[],
    owns: (partnerId: PartnerId) => boolean,
    leavesRecent: boolean,
  ): Promise<readonly QueueHead[]> {
    const heads = await this.#parts.store.heads(shards);
    const nowMs = this.#parts.clock.monotonicMs();
    this.#forgetEnded(nowMs);
    for (const head of heads) {
      // Given away while the statement ran, or recorded since. Behind one that rests there may be others.
      const isLeft = () => this.#ended.knows(head) || (leavesRecent && head.dueInMs > -hintMs);
      if (!owns(head.partnerId) || (head.dueInMs <= 0 && isLeft())) continue;
      const queue = this.#inUse(head);
      queue.headFound(head.id, head.dueInMs, nowMs);
      this.#consider(queue);
    }
    return heads;
  }

  /** Whether the queue is still in use, and not closed since. */
  isInUse(queue: Queue): boolean {
    return this.#partners.get(queue.partnerId)?.get(queue.name) === queue;
  }

  stop(): void {
    this.#isStopped = true;
    for (const { cancel } of this.#timers.values()) cancel();
    this.#timers.clear();
    for (const { wanting } of this.#readers) wanting.clear();
  }

  #inUse({ partnerId, queue: name }: QueueKey): Queue {
    const queues = this.#partners.get(partnerId) ?? new Map<string, Queue>();
    const queue = queues.get(name) ?? new Queue(partnerId, name, this.#memory);
    queue.rowsMax = this.#roomOf(queue);
    this.#partners.set(partnerId, queues.set(name, queue));
    return queue;
  }

  /**
   * As many rows as its partner needs, but not more rows and bytes than are free: stuck queues leave room for the
   * others.
   */
  #roomOf({ partnerId, bytes }: Queue): number {
    const isPartnerIdle = () => this.queuesOf(partnerId).every(({ rows }) => rows === 0);
    const { rowsMax, bytesMax, limitsOf } = this.#parts;
    const wantedRows = limitsOf(partnerId).rowsMax;
    if (wantedRows === 0) return 0;
    const freeRows = rowsMax - this.rows;
    const freeBytes = bytesMax - this.bytes;
    if (freeRows < -rowsMax || freeBytes < -bytesMax) return isPartnerIdle() ? 1 : 0;
    if (bytes >= freeBytes) return 1;
    return Math.max(minRows, Math.min(wantedRows, freeRows));
  }

  #added(queue: Queue, added: readonly Delivery[]): void {
    const following = added.filter(isFollowing);
    if (following.length > 0) this.#readerOf(queue).order.check(following);
    if (queue.head !== undefined) this.#parts.onReady(queue);
  }

  /** Schedules the next read of a queue, or forgets it if nothing is known about it. */
  #consider(queue: Queue): void {
    if (this.#isStopped || !this.isInUse(queue)) return;
    if (queue.isIdle) {
      this.#close(queue);
      return;
    }
    // Everything is in memory, as usual: there is nothing to read, now or later.
    if (!queue.hasMore && queue.nextDueMs === undefined) return;
    const nowMs = this.#parts.clock.monotonicMs();
    const readableAtMs = this.#mayReadAtMs(queue);
    if (readableAtMs === undefined) return;
    if (readableAtMs > nowMs) {
      this.#wakeAt(queue, readableAtMs);
      return;
    }
    queue.rowsMax = this.#roomOf(queue);
    if (queue.wants(nowMs) !== undefined) {
      const reader = this.#readerOf(queue);
      reader.wanting.add(queue);
      if (!reader.isReading) {
        reader.isReading = true;
        this.#parts.timers.after(0, () => void this.#readAll(reader));
      }
      return;
    }
    // A time in the past waits for room, or for the running read: both check again when they end.
    const later = [queue.nextDueMs ?? nowMs, queue.coolsUntilMs ?? nowMs].filter((atMs) => atMs > nowMs);
    if (later.length > 0) this.#wakeAt(queue, Math.min(...later));
  }

  #mayReadAtMs(queue: Queue): number | undefined {
    if (!this.#parts.limitsOf(queue.partnerId).mayRead) return undefined;
    return this.#parts.readableAtMs(queueKeyOf(queue));
  }

  #wakeAt(queue: Queue, atMs: number): void {
    const timer = this.#timers.get(queue);
    if (timer !== undefined && timer.atMs <= atMs) return;
    timer?.cancel();
    const inMs = Math.min(Math.max(1, atMs - this.#parts.clock.monotonicMs()), timerMaxMs);
    const cancel = this.#parts.timers.after(inMs, () => {
      this.#timers.delete(queue);
      this.#consider(queue);
    });
    this.#timers.set(queue, { atMs, cancel });
  }

  #readerOf({ partnerId }: Pick<Queue, "partnerId">): Reader {
    const { homes } = this.#parts;
    // Every home has one.
    return this.#readers[homes === 1 ? 0 : homeOf(shardOf(partnerId), homes)] as Reader;
  }

  async #readAll(reader: Reader): Promise<void> {
    for (let batch = this.#nextReads(reader); batch.length > 0; batch = this.#nextReads(reader)) {
      try {
        reader.sinceMs = this.#parts.clock.monotonicMs();
        const pages = await this.#parts.store.read(batch.map(({ read }) => read));
        const nowMs = this.#parts.clock.monotonicMs();
        for (const [at, { queue }] of batch.entries()) {
          const page = pages[at];
          if (page === undefined || !this.isInUse(queue)) continue;
          queue.rowsMax = this.#roomOf(queue);
          const added = queue.readEnds(page, nowMs, (delivery) => this.#isUnwanted(delivery));
          this.#added(queue, added);
          this.#consider(queue);
        }
      } catch (error) {
        this.#parts.onTrouble("due deliveries could not be read", error);
        for (const { queue } of batch) queue.readFailed();
        await new Promise<void>((resolve) => void this.#parts.timers.after(retryMs, resolve));
        for (const { queue } of batch) this.#consider(queue);
      }
    }
    reader.isReading = false;
  }

  /** The reads of the queues that have waited longest, within the bounds of one statement. */
  #nextReads(reader: Reader): { queue: Queue; read: QueueRead }[] {
    const nowMs = this.#parts.clock.monotonicMs();
    reader.sinceMs = Infinity;
    this.#forgetEnded(nowMs);
    const batch: { queue: Queue; read: QueueRead }[] = [];
    let rows = 0;
    for (const queue of reader.wanting) {
      if (batch.length >= readsMax || rows >= readRowsMax) break;
      reader.wanting.delete(queue);
      const wanted = this.#wants(queue, nowMs);
      if (wanted === undefined) continue;
      const rowsMax = Math.min(wanted.rowsMax, readRowsMax);
      rows += rowsMax;
      queue.readBegins(wanted, nowMs);
      const { after } = wanted;
      batch.push({ queue, read: { ...queueKeyOf(queue), after, rowsMax, bytesMax: this.#pageBytes(rowsMax) } });
    }
    return batch;
  }

  #pageBytes(rowsMax: number): number {
    return Math.max(1, Math.min(pageBytesMax, rowsMax * bytesPerRow, this.#parts.bytesMax - this.bytes));
  }

  #wants(queue: Queue, nowMs: number): WantedRead | undefined {
    const atMs = this.#mayReadAtMs(queue);
    if (atMs === undefined || atMs > nowMs) return undefined;
    queue.rowsMax = this.#roomOf(queue);
    return queue.wants(nowMs);
  }

  /** @param delivery not in memory in the queue that was read */
  #isUnwanted(delivery: Delivery): boolean {
    const isInOther = this.has(delivery.id);
    if (isInOther) this.#moved.set(delivery.id, delivery);
    return isInOther || this.#isStale(delivery);
  }

  /** Whether a row from a read or a hint predates an outcome that is recorded by now, or has to rest. */
  #isStale(row: Pick<Delivery, "id" | "round" | "attemptsMade">): boolean {
    const resting = this.#resting.get(row.id);
    return this.#ended.knows(row) || (resting !== undefined && attemptNumber(resting) >= attemptNumber(row));
  }

  #forgetEnded(nowMs: number): void {
    const readsSince = this.#readers.flatMap(({ sinceMs, scansSinceMs }) => [sinceMs, scansSinceMs]);
    this.#ended.forget(nowMs, Math.min(nowMs, ...readsSince));
  }

  #close(queue: Queue): void {
    const queues = this.#partners.get(queue.partnerId);
    queues?.delete(queue.name);
    if (queues?.size === 0) this.#partners.delete(queue.partnerId);
    this.#detach(queue);
  }

  #detach(queue: Queue): void {
    this.#timers.get(queue)?.cancel();
    this.#timers.delete(queue);
    this.#released(queue.close());
  }

  /** These left memory, for whatever reason. */
  #released(deliveries: readonly Delivery[]): void {
    for (const delivery of deliveries) {
      const { id } = delivery;
      this.#readerOf(delivery).order.ended(id);
      const moved = this.#moved.get(id);
      this.#moved.delete(id);
      // Its queue may have been closed since, because it was empty. A forgotten partner stays forgotten.
      if (moved !== undefined && this.#partners.has(moved.partnerId)) this.wake(moved);
    }
  }
}

function queueKeyOf({ partnerId, name }: Queue): QueueKey {
  return { partnerId, queue: name };
}

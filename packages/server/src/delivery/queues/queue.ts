import { strict as assert } from "node:assert";
import type { NotificationId, PartnerId } from "../../ids.ts";
import type { Delivery } from "../delivery.ts";
import type { QueuePage, QueuePosition } from "../store.ts";
import { attemptNumber, type Entry, type Memory } from "./memory.ts";

/** The read that a queue wants: on from the cursor, or from its head. */
export interface WantedRead {
  readonly after: QueuePosition | undefined;
  readonly rowsMax: number;
}

/** The bounds of one queue in memory, and whether it is read. */
export interface QueueLimits {
  /** 0: nothing of it is kept in memory. */
  readonly rowsMax: number;
  /** False: its partner is paused or unknown yet, or the worker does not own it. */
  readonly mayRead: boolean;
}

/** What a queue does about its rows in the database: the picture at `Queue`. */
type Mode =
  | { readonly name: "complete" | "partial" }
  | {
      readonly name: "reading";
      readonly fromHead: boolean;
      readonly startedMs: number;
      /** There are rows that are neither in memory nor in this reading. */
      isPartial: boolean;
      /** The earliest due time not kept since it began: the next read starts before it. In microseconds since 1970. */
      rewindUs: number | undefined;
    };

/**
 * The deliveries pending for one partner at one callback origin, as far as they are in memory. The database has all of
 * them. A queue is _complete_ if it has everything that was committed before its last read began; a new one is, before
 * any read. If not, it is _partial_, and reads on from its cursor when it runs low. Whatever its mode, it may _want its
 * head_: one read from the head has to follow once it is complete, because something is due, but not known since when,
 * or an outcome did not match its row. Deliveries that were not kept in memory are read again from the cursor, which
 * moves back if it has passed them. A read from the head that finds nothing is followed by a rest ten times as long as it
 * took, at most five seconds: while another transaction stays open, it must skip every deleted row.
 *
 * ```
 * complete ──(not kept, hinted, the next one is due, ready ones are forgotten)──► partial
 * partial ──(it runs low)──► reading ──(reached a bound, or one was not kept meanwhile whose time is known)──► partial
 * complete ──(wants its head, and has rested)──► reading ──(reached the end)──► complete
 * reading ──(failed)──► as before, and the same read is wanted again
 * ```
 *
 * A delivery in it: following (its order is checked) ──► ready ──► taken (sent, recorded, postponed) ──► released. From
 * each of these it may be released, and a ready one may be forgotten, to be read again.
 */
export class Queue {
  readonly partnerId: PartnerId;
  readonly name: string;
  /** The maximum number of deliveries in memory, including sent ones that are not recorded yet. */
  rowsMax = 0;
  #bytes = 0;
  readonly #memory: Memory<Queue>;
  readonly #entries = new Set<Entry<Queue>>();
  #ready: Entry<Queue>[] = [];
  #cursor: QueuePosition | undefined;
  #mode: Mode = { name: "complete" };
  #wantsHead = false;
  #headCoolsUntilMs = 0;
  /** When the next one is due, by the monotonic clock. */
  #nextDueMs: number | undefined;

  constructor(partnerId: PartnerId, name: string, memory: Memory<Queue>) {
    this.#memory = memory;
    this.partnerId = partnerId;
    this.name = name;
  }

  /** The next delivery to send. */
  get head(): Delivery | undefined {
    return this.#ready[0]?.delivery;
  }

  /** The number of deliveries in memory, including sent ones that are not recorded yet. */
  get rows(): number {
    return this.#entries.size;
  }

  /** The size of the content in memory. */
  get bytes(): number {
    return this.#bytes;
  }

  /** There is more in the database than in memory. */
  get hasMore(): boolean {
    return this.#isPartial || this.#wantsHead;
  }

  get isReading(): boolean {
    return this.#mode.name === "reading";
  }

  get nextDueMs(): number | undefined {
    return this.#nextDueMs;
  }

  /** Whether it knows nothing that the database does not. */
  get isIdle(): boolean {
    return this.rows === 0 && this.#mode.name === "complete" && !this.#wantsHead && this.#nextDueMs === undefined;
  }

  has(id: NotificationId): boolean {
    return this.#find(id) !== undefined;
  }

  /**
   * Adds a delivery that was just made durable and is not in memory, with its content. @returns whether it is in memory now; otherwise it is
   * read later
   */
  offer(delivery: Delivery): boolean {
    // A read from the head needs room next to new arrivals.
    const rowsMax = this.#wantsHead ? this.rowsMax / 2 : this.rowsMax;
    if (!this.#isPartial && this.rows < rowsMax) {
      this.#add(delivery, delivery.scheduleStartMs);
      return true;
    }
    this.wake(delivery.scheduleStartMs);
    return false;
  }

  /** Adds a due row of a queue that is not read. @returns whether there was room for it */
  adopt(delivery: Delivery, dueMs: number): boolean {
    if (this.#memory.find(delivery.id) !== undefined || this.rows >= this.rowsMax) return false;
    this.#add(delivery, dueMs);
    return true;
  }

  /**
   * Something became due that is not in memory.
   *
   * @param sinceMs nothing of that was due earlier, in milliseconds since 1970 by the database's clock; undefined:
   * unknown, so only a read from the head finds it
   */
  wake(sinceMs?: number): void {
    const mode = this.#becomePartial();
    if (sinceMs === undefined) this.#wantsHead = true;
    else if (mode.name === "reading") mode.rewindUs = Math.min(mode.rewindUs ?? Infinity, sinceMs * 1_000);
    else this.#rewind(sinceMs * 1_000);
  }

  /** Returns the read that it wants now, if any: on from the cursor while it runs low, otherwise from the head. */
  wants(nowMs: number): WantedRead | undefined {
    if (this.isReading) return undefined;
    if (this.#nextDueMs !== undefined && this.#nextDueMs <= nowMs) {
      this.#nextDueMs = undefined;
      this.#becomePartial();
    }
    const room = this.rowsMax - this.rows;
    if (room <= 0 || this.#ready.length > this.rowsMax / 2) return undefined;
    if (this.#isPartial) return { after: this.#cursor, rowsMax: room };
    // Deliveries in memory are usually at the head.
    if (this.#wantsHead && nowMs >= this.#headCoolsUntilMs) return { after: undefined, rowsMax: room + this.rows };
    return undefined;
  }

  /** When a read from the head may begin; undefined if none is wanted. */
  get coolsUntilMs(): number | undefined {
    return this.#wantsHead && this.#mode.name === "complete" ? this.#headCoolsUntilMs : undefined;
  }

  readBegins({ after }: WantedRead, nowMs: number): void {
    assert(this.#mode.name !== "reading", "a queue has one read at a time");
    const fromHead = after === undefined;
    this.#mode = { name: "reading", fromHead, startedMs: nowMs, isPartial: this.#isPartial, rewindUs: undefined };
    if (fromHead) this.#wantsHead = false;
  }

  /** @param isStale whether an outcome is known that the row does not show yet */
  readEnds(page: QueuePage, nowMs: number, isStale: (delivery: Delivery) => boolean): readonly Delivery[] {
    const { fromHead, startedMs, rewindUs } = this.#reading();
    const added: Delivery[] = [];
    let isCut = false;
    let cursor = fromHead && page.due.length > 0 ? undefined : this.#cursor;
    for (const { dueAtUs, id, delivery } of page.due) {
      const entry = this.#find(id);
      const dueMs = Math.floor(dueAtUs / 1_000);
      if (entry !== undefined && delivery !== undefined) {
        entry.isOutdated ||= dueMs > entry.dueMs || attemptNumber(delivery) > attemptNumber(entry.delivery);
      }
      const isNew = delivery !== undefined && entry === undefined && !isStale(delivery);
      // Hints took the room during the read: the rest is read again.
      isCut = isNew && this.rows >= this.rowsMax;
      if (isCut) break;
      cursor = { dueAtUs, id };
      if (!isNew) continue;
      this.#add(delivery, dueMs);
      added.push(delivery);
    }
    this.#cursor = cursor;
    // Deliveries not kept while the read ran may have been committed after it began.
    this.#stopReading(page.hasMore || isCut, rewindUs);
    if (page.nextInMs !== undefined) this.#dueAgain(nowMs + Math.max(1, page.nextInMs));
    if (fromHead)
      this.#headCoolsUntilMs = nowMs + (added.length > 0 ? 0 : cooldownMs(nowMs - startedMs, headCooldownMaxMs));
    return added;
  }

  /** The read failed: the same one is wanted again. */
  readFailed(): void {
    const { fromHead, isPartial, rewindUs } = this.#reading();
    if (fromHead) this.#wantsHead = true;
    this.#stopReading(isPartial, rewindUs);
  }

  /** Removes the head for sending. It counts as taken from now on. */
  startHead(): Delivery | undefined {
    const entry = this.#ready.shift();
    if (entry !== undefined) entry.state = "taken";
    return entry?.delivery;
  }

  /** Removes ready deliveries to postpone them. They count as taken from now on. */
  takeReady(which: (delivery: Delivery) => boolean): readonly Delivery[] {
    return this.#takeReady(which).map(({ delivery }) => delivery);
  }

  /** A following delivery may be sent: it becomes the first ready one. */
  makeReady(delivery: Delivery): void {
    const entry = this.#memory.findExact(delivery);
    if (entry?.state !== "following") return;
    entry.state = "ready";
    this.#ready.unshift(entry);
  }

  /** Removes a delivery: accepted, parked, or due again after `againInMs`. */
  release(delivery: Delivery, nowMs: number, againInMs?: number): void {
    const entry = this.#memory.findExact(delivery);
    if (entry === undefined) return;
    this.#remove(entry);
    if (entry.state === "ready") this.#ready.splice(this.#ready.indexOf(entry), 1);
    if (entry.isOutdated) this.#wantsHead = true;
    if (againInMs !== undefined) this.#dueAgain(nowMs + againInMs);
  }

  /** An outcome did not match its row: the database has changed. */
  missed(): void {
    this.#wantsHead = true;
  }

  /**
   * Forgets deliveries that wait: their endpoint accepts nothing now, or their partner is paused. They are read again
   * from the head. @returns the forgotten ones
   */
  forgetReady(which: (delivery: Delivery) => boolean = () => true): readonly Delivery[] {
    const forgotten = this.#takeReady(which);
    for (const entry of forgotten) this.#remove(entry);
    // A read in progress continues after them.
    if (this.#becomePartial().name === "reading") this.#wantsHead = true;
    else this.#cursor = undefined;
    return forgotten.map(({ delivery }) => delivery);
  }

  /** The queue is not used any more. @returns what was in memory */
  close(): readonly Delivery[] {
    const entries = [...this.#entries];
    for (const entry of entries) this.#remove(entry);
    this.#ready = [];
    return entries.map(({ delivery }) => delivery);
  }

  /** The sweep found this delivery at the queue's head. */
  headFound(id: NotificationId, dueInMs: number, nowMs: number): void {
    if (this.has(id)) return;
    if (dueInMs > 0) this.#dueAgain(nowMs + dueInMs);
    else this.#wantsHead = true;
  }

  #find(id: NotificationId): Entry<Queue> | undefined {
    const entry = this.#memory.find(id);
    return entry?.queue === this ? entry : undefined;
  }

  #add(delivery: Delivery, dueMs: number): void {
    const isReady = !isFollowing(delivery);
    const entry: Entry<Queue> = {
      delivery,
      queue: this,
      dueMs,
      state: isReady ? "ready" : "following",
      isOutdated: false,
    };
    this.#bytes += delivery.bytes;
    this.#entries.add(entry);
    this.#memory.add(entry);
    if (isReady) this.#ready.push(entry);
  }

  #takeReady(which: (delivery: Delivery) => boolean): readonly Entry<Queue>[] {
    const { taken = [], left = [] } = Object.groupBy(this.#ready, ({ delivery }) =>
      which(delivery) ? "taken" : "left",
    );
    this.#ready = left;
    for (const entry of taken) entry.state = "taken";
    return taken;
  }

  /** The database has rows that are not in memory, nor in a reading. */
  get #isPartial(): boolean {
    return this.#mode.name === "reading" ? this.#mode.isPartial : this.#mode.name === "partial";
  }

  #becomePartial(): Mode {
    if (this.#mode.name === "reading") this.#mode.isPartial = true;
    else if (this.#mode.name === "complete") this.#mode = { name: "partial" };
    return this.#mode;
  }

  #reading(): Extract<Mode, { name: "reading" }> {
    assert(this.#mode.name === "reading", "a read ends that did not begin");
    return this.#mode;
  }

  #stopReading(isPartial: boolean, rewindUs: number | undefined): void {
    this.#mode = { name: isPartial || rewindUs !== undefined ? "partial" : "complete" };
    if (rewindUs !== undefined) this.#rewind(rewindUs);
  }

  #rewind(dueAtUs: number): void {
    if (this.#cursor === undefined || this.#cursor.dueAtUs < dueAtUs) return;
    this.#cursor = { dueAtUs: dueAtUs - 1, id: lastId };
  }

  #remove(entry: Entry<Queue>): void {
    this.#entries.delete(entry);
    this.#memory.remove(entry);
    this.#bytes -= entry.delivery.bytes;
  }

  #dueAgain(atMs: number): void {
    if (this.#nextDueMs === undefined || atMs < this.#nextDueMs) this.#nextDueMs = atMs;
  }
}

const cooldownFactor = 10;
/** A process or database that stalled for seconds must not make a queue wait for a minute. */
const headCooldownMaxMs = 5_000;

/** An expensive read is followed by a rest ten times as long as it took, within a bound. */
export function cooldownMs(tookMs: number, mostMs: number): number {
  return Math.min(tookMs * cooldownFactor, mostMs);
}
/** Sorts after every id that is due in the same microsecond. */
const lastId = "ffffffff-ffff-ffff-ffff-ffffffffffff" as NotificationId;

/** Whether its order is checked before it is ready. */
export function isFollowing({ follows, settlesBatch }: Delivery): boolean {
  return follows || settlesBatch !== null;
}

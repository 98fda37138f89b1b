import { ServiceError } from "../errors.ts";
import type { PartnerId } from "../ids.ts";
import type { HistoryPoint, HistoryPosition, NotificationStore } from "./store.ts";

export interface LongPollsParts {
  readonly store: Pick<NotificationStore, "following">;
  /** The maximum number of waiting callers, of all partners. */
  readonly waitingMax: number;
}

/** The bounds of one caller's wait. */
export interface WaitOptions {
  readonly durationMs: number;
  /** Aborted when the caller disconnects. */
  readonly signal: AbortSignal;
}

interface Waiter extends HistoryPosition {
  /** @param error why the database could not be read */
  end(error?: ServiceError): void;
}

/** Writes by other instances are seen by this read, which serves all waiting callers. */
const tickMs = 250;
/** The minimum time between two reads. */
const pauseMs = 10;
const waitingOfPartnerMax = 16;
const retryAfterS = 5;

/**
 * Callers that wait for a partner's next notification. They share reads of the database: as soon as this instance wrote
 * something for one of them, and once in each tick. Between two reads nothing is queried, however many wait.
 */
export class LongPolls {
  readonly #parts: LongPollsParts;
  readonly #waiters = new Map<PartnerId, Set<Waiter>>();
  /** The callers that the next read serves. */
  readonly #nextRead = new Set<Waiter>();
  #waiting = 0;
  #tick: NodeJS.Timeout | undefined;
  #next: { readonly timer: NodeJS.Timeout; readonly atMs: number } | undefined;
  #isReading = false;
  #readEndedMs = Number.NEGATIVE_INFINITY;
  /**
   * The wait for a notification that is durable but not visible yet. It doubles after each read that still finds it so.
   */
  #invisibleMs = pauseMs;
  #stopped = false;

  constructor(parts: LongPollsParts) {
    this.#parts = parts;
  }

  /** The number of callers that wait now. */
  get waiting(): number {
    return this.#waiting;
  }

  /**
   * Resolves when something follows this position, or the time is over.
   *
   * @returns false if the caller disconnected or the service stops: then no page needs to be read
   * @throws ServiceError `too_many_requests`, `unavailable`
   */
  async wait(partnerId: PartnerId, after: HistoryPoint, { durationMs, signal }: WaitOptions): Promise<boolean> {
    if (this.#stopped || signal.aborted) return false;
    this.#requireRoom(partnerId);
    const ended = Promise.withResolvers<void>();
    const waiter: Waiter = {
      partnerId,
      after,
      end: (error) => (error === undefined ? ended.resolve() : ended.reject(error)),
    };
    const end = () => waiter.end();
    const timer = setTimeout(end, durationMs);
    signal.addEventListener("abort", end, { once: true });
    this.#add(waiter);
    try {
      // Writes since the page was read notified nobody.
      this.#requestRead([waiter]);
      await ended.promise;
    } finally {
      clearTimeout(timer);
      signal.removeEventListener("abort", end);
      this.#remove(waiter);
    }
    return !this.#stopped && !signal.aborted;
  }

  /** This instance has made a notification of the partner durable. */
  notify(partnerId: PartnerId): void {
    const waiters = this.#waiters.get(partnerId);
    if (waiters === undefined) return;
    this.#invisibleMs = pauseMs;
    this.#requestRead(waiters);
  }

  /** Ends all waits, and refuses new ones. */
  stop(): void {
    this.#stopped = true;
    for (const waiters of this.#waiters.values()) for (const waiter of waiters) waiter.end();
  }

  #requireRoom(partnerId: PartnerId): void {
    const own = this.#waiters.get(partnerId)?.size ?? 0;
    if (own >= waitingOfPartnerMax) {
      const message = `${own} of your requests wait for a notification already: that is the maximum.`;
      throw new ServiceError("too_many_requests", message, { retryAfterS });
    }
    if (this.#waiting >= this.#parts.waitingMax) {
      const message = "Too many requests wait for a notification already: ask without wait.";
      throw new ServiceError("too_many_requests", message, { retryAfterS });
    }
  }

  #add(waiter: Waiter): void {
    const own = this.#waiters.get(waiter.partnerId) ?? new Set();
    this.#waiters.set(waiter.partnerId, own.add(waiter));
    this.#waiting += 1;
    this.#tick ??= setInterval(() => this.#requestRead([...this.#waiters.values()].flatMap((all) => [...all])), tickMs);
  }

  #remove(waiter: Waiter): void {
    const own = this.#waiters.get(waiter.partnerId);
    own?.delete(waiter);
    if (own?.size === 0) this.#waiters.delete(waiter.partnerId);
    this.#nextRead.delete(waiter);
    this.#waiting -= 1;
    if (this.#waiting > 0) return;
    clearInterval(this.#tick);
    clearTimeout(this.#next?.timer);
    this.#tick = undefined;
    this.#next = undefined;
  }

  #requestRead(waiters: Iterable<Waiter>): void {
    for (const waiter of waiters) this.#nextRead.add(waiter);
    this.#readIn(0);
  }

  #readIn(inMs: number): void {
    // A read in progress continues with the callers that it began with.
    if (this.#isReading || this.#nextRead.size === 0) return;
    const nowMs = performance.now();
    const atMs = Math.max(nowMs + inMs, this.#readEndedMs + pauseMs);
    if (this.#next !== undefined && this.#next.atMs <= atMs) return;
    clearTimeout(this.#next?.timer);
    const timer = setTimeout(() => {
      this.#next = undefined;
      void this.#read();
    }, atMs - nowMs);
    this.#next = { timer, atMs };
  }

  async #read(): Promise<void> {
    const waiters = [...this.#nextRead];
    this.#nextRead.clear();
    this.#isReading = true;
    const invisible = await this.#endFound(waiters);
    this.#isReading = false;
    this.#readEndedMs = performance.now();
    this.#readIn(0);
    if (invisible.length === 0) return;
    for (const waiter of invisible) this.#nextRead.add(waiter);
    this.#readIn(this.#invisibleMs);
    this.#invisibleMs = Math.min(this.#invisibleMs * 2, tickMs);
  }

  /** @returns the callers for whom something is not visible yet */
  async #endFound(waiters: readonly Waiter[]): Promise<readonly Waiter[]> {
    try {
      const found = await this.#parts.store.following(waiters);
      for (const [index, waiter] of waiters.entries()) if (found[index] === "visible") waiter.end();
      return waiters.filter((waiter, index) => found[index] === "not_visible" && this.#isWaiting(waiter));
    } catch (cause) {
      for (const waiter of waiters) waiter.end(new ServiceError("unavailable", undefined, { retryAfterS: 2, cause }));
      return [];
    }
  }

  #isWaiting(waiter: Waiter): boolean {
    return this.#waiters.get(waiter.partnerId)?.has(waiter) === true;
  }
}

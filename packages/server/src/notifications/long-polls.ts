import { ServiceError } from "../errors.ts";
import type { PartnerId } from "../ids.ts";
import type { HistoryPoint } from "./cursor.ts";
import type { HistoryPosition, NotificationStore } from "./store.ts";

export interface LongPollsParts {
  readonly store: Pick<NotificationStore, "following">;
  /** Who may wait at once, all partners together. */
  readonly waitingMax: number;
}

/** For how long somebody waits at most. */
export interface WaitOptions {
  readonly durationMs: number;
  /** Aborted when whoever waits went away. */
  readonly signal: AbortSignal;
}

interface Waiter extends HistoryPosition {
  /** @param error why it cannot be told whether anything has come */
  end(error?: ServiceError): void;
}

/** What another instance wrote is seen by this look, one for everybody who waits. */
const tickMs = 250;
/** From one look to the next, whatever happens. */
const pauseMs = 10;
const waitingOfPartnerMax = 16;
const retryAfterS = 5;

/**
 * Who waits for a partner's next notification. They look into the database together: as soon as this instance wrote
 * something of theirs, and once in each tick. Between two looks nobody asks, however many wait.
 */
export class LongPolls {
  readonly #parts: LongPollsParts;
  readonly #waiters = new Map<PartnerId, Set<Waiter>>();
  /** For whom is looked next. */
  readonly #nextRead = new Set<Waiter>();
  #waiting = 0;
  #tick: NodeJS.Timeout | undefined;
  #next: { readonly timer: NodeJS.Timeout; readonly atMs: number } | undefined;
  #isReading = false;
  #lookedAtMs = Number.NEGATIVE_INFINITY;
  /** How long is waited for what is durable and not settled: twice as long after each look that still finds it so. */
  #settlingMs = pauseMs;
  #stopped = false;

  constructor(parts: LongPollsParts) {
    this.#parts = parts;
  }

  /** How many wait now. */
  get waiting(): number {
    return this.#waiting;
  }

  /**
   * Resolves when something has come after that place, or the time is over.
   *
   * @returns false when nobody is there to be told, or the service stops: then it is not worth a look
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
      // What was written since the page was read told nobody.
      this.#requestRead([waiter]);
      await ended.promise;
    } finally {
      clearTimeout(timer);
      signal.removeEventListener("abort", end);
      this.#remove(waiter);
    }
    return !this.#stopped && !signal.aborted;
  }

  /** This instance has made a notification of the partner's durable. */
  notify(partnerId: PartnerId): void {
    const waiters = this.#waiters.get(partnerId);
    if (waiters === undefined) return;
    this.#settlingMs = pauseMs;
    this.#requestRead(waiters);
  }

  /** Nobody waits from now on. */
  stop(): void {
    this.#stopped = true;
    for (const waiters of this.#waiters.values()) for (const waiter of waiters) waiter.end();
  }

  #requireRoom(partnerId: PartnerId): void {
    const own = this.#waiters.get(partnerId)?.size ?? 0;
    if (own >= waitingOfPartnerMax) {
      const message = `${own} of your requests wait for a notification already: that is as many as may.`;
      throw new ServiceError("too_many_requests", message, { retryAfterS });
    }
    if (this.#waiting >= this.#parts.waitingMax) {
      const message = "As many requests as may wait for a notification already: ask without wait.";
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
    // A look that is under way goes on by itself with whom it did not know of.
    if (this.#isReading || this.#nextRead.size === 0) return;
    const nowMs = performance.now();
    const atMs = Math.max(nowMs + inMs, this.#lookedAtMs + pauseMs);
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
    const unsettled = await this.#endFound(waiters);
    this.#isReading = false;
    this.#lookedAtMs = performance.now();
    this.#readIn(0);
    if (unsettled.length === 0) return;
    for (const waiter of unsettled) this.#nextRead.add(waiter);
    this.#readIn(this.#settlingMs);
    this.#settlingMs = Math.min(this.#settlingMs * 2, tickMs);
  }

  /** @returns those for whom there is something that is not settled yet */
  async #endFound(waiters: readonly Waiter[]): Promise<readonly Waiter[]> {
    try {
      const found = await this.#parts.store.following(waiters);
      for (const [index, waiter] of waiters.entries()) if (found[index] === "settled") waiter.end();
      return waiters.filter((waiter, index) => found[index] === "unsettled" && this.#isWaiting(waiter));
    } catch (cause) {
      for (const waiter of waiters) waiter.end(new ServiceError("unavailable", undefined, { retryAfterS: 2, cause }));
      return [];
    }
  }

  #isWaiting(waiter: Waiter): boolean {
    return this.#waiters.get(waiter.partnerId)?.has(waiter) === true;
  }
}

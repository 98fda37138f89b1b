import { setImmediate as nextTurn } from "node:timers/promises";
import type { Clock, Timers } from "../../clock.ts";

/** Time that a partner may have taken when its next request is admitted: others wait as long. */
const burstMs = 5;
const waitMsMax = 1_000;
/** Further requests are refused at once. */
const waitingMax = 1_024;

interface Waiting {
  /** Of work that pauses: what was begun first ends first. */
  readonly order: number;
  readonly expectedMs: number;
  readonly untilMs: number;
  readonly resolve: (isAdmitted: boolean) => void;
}

interface Account {
  usedMs: number;
  atMs: number;
  /** Admitted work: before what is not admitted yet. */
  readonly paused: Waiting[];
  /** Requests that are not admitted yet. */
  readonly asking: Waiting[];
  isTimed: boolean;
}

/**
 * The part of the event loop's time that the requests of each partner may take at this instance: a leaky bucket of
 * milliseconds. The expected cost is added before a request is read, and corrected by what it took. A partner that has
 * used up its time waits, because answering refusals would cost as much as the requests. Longer work is done in parts
 * with pauses between them, which spread it over time.
 */
export class ProcessorShare {
  readonly percent: number;
  readonly #clock: Pick<Clock, "monotonicMs">;
  readonly #timers: Timers;
  readonly #accounts = new Map<string, Account>();
  #begun = 0;
  /** Of all partners: each part has a turn of the event loop to itself. */
  #lastTurn: Promise<unknown> = Promise.resolve();

  constructor(percent: number, clock: Pick<Clock, "monotonicMs">, timers: Timers) {
    this.percent = percent;
    this.#clock = clock;
    this.#timers = timers;
  }

  /** Accounts that are kept: of partners that have used time lately, and a few more. */
  get size(): number {
    return this.#accounts.size;
  }

  /** Adds the expected cost as soon as there is time for it. @returns false: there was none within a second */
  async admit(id: string, expectedMs: number): Promise<boolean> {
    const account = this.#account(id);
    const { paused, asking } = account;
    if (paused.length + asking.length > 0 || this.#lacksMs(account) > 0) {
      if (asking.length >= waitingMax) return false;
      const untilMs = this.#clock.monotonicMs() + waitMsMax;
      return await this.#wait(account, asking, { order: 0, expectedMs, untilMs });
    }
    this.#charge(account, expectedMs);
    return true;
  }

  /**
   * For admitted work of several parts.
   *
   * @returns a pause after a part, which took `spentMs`: it ends when there is time for another one like it, in a turn
   * of the event loop in which no other part is done
   */
  pauses(id: string): (spentMs: number) => Promise<void> {
    this.#begun += 1;
    const order = this.#begun;
    let expectedMs = 0;
    return async (spentMs) => {
      const account = this.#account(id);
      this.add(id, spentMs - expectedMs);
      expectedMs = spentMs;
      if (account.paused.length > 0 || this.#lacksMs(account) > 0) {
        await this.#wait(account, account.paused, { order, expectedMs, untilMs: Number.POSITIVE_INFINITY });
      } else this.#charge(account, expectedMs);
      this.#lastTurn = this.#lastTurn.then(() => nextTurn());
      await this.#lastTurn;
    };
  }

  /** Corrects the cost: below zero if less was taken than expected. */
  add(id: string, ms: number): void {
    const account = this.#account(id);
    this.#charge(account, ms);
    if (ms < 0) this.#admitNext(account);
  }

  #charge(account: Account, ms: number): void {
    account.usedMs = Math.max(0, this.#usedMs(account) + ms);
    account.atMs = this.#clock.monotonicMs();
  }

  #account(id: string): Account {
    const known = this.#accounts.get(id);
    if (known !== undefined) return known;
    this.#forgetIdle();
    const account = { usedMs: 0, atMs: 0, paused: [], asking: [], isTimed: false };
    this.#accounts.set(id, account);
    return account;
  }

  /** Looks at the two oldest accounts for each new one, so that none stays for long after its partner's last request. */
  #forgetIdle(): void {
    let looks = 0;
    for (const [id, account] of this.#accounts) {
      looks += 1;
      if (looks > 2) return;
      this.#accounts.delete(id);
      const isIdle = !account.isTimed && account.paused.length + account.asking.length === 0;
      if (!isIdle || this.#usedMs(account) > 0) this.#accounts.set(id, account);
    }
  }

  #wait(account: Account, queue: Waiting[], waiting: Omit<Waiting, "resolve">): Promise<boolean> {
    const { promise, resolve } = Promise.withResolvers<boolean>();
    queue.push({ ...waiting, resolve });
    queue.sort((one, other) => one.order - other.order);
    this.#timeNext(account);
    return promise;
  }

  /** One timer for all that wait: with one for each, every request that is admitted would wake a thousand others. */
  #timeNext(account: Account): void {
    if (account.isTimed) return;
    const { paused, asking } = account;
    const [oldest] = asking;
    if (paused.length === 0 && oldest === undefined) return;
    const leftMs = (oldest?.untilMs ?? Number.POSITIVE_INFINITY) - this.#clock.monotonicMs();
    account.isTimed = true;
    this.#timers.after(Math.max(1, Math.ceil(Math.min(this.#lacksMs(account), leftMs))), () => {
      account.isTimed = false;
      this.#admitNext(account);
      this.#timeNext(account);
    });
  }

  #admitNext(account: Account): void {
    const { paused, asking } = account;
    while (this.#lacksMs(account) <= 0) {
      const next = paused.shift() ?? asking.shift();
      if (next === undefined) return;
      this.#charge(account, next.expectedMs);
      next.resolve(true);
    }
    const nowMs = this.#clock.monotonicMs();
    while (asking[0] !== undefined && asking[0].untilMs <= nowMs) asking.shift()?.resolve(false);
  }

  /** The time until the partner has some left. */
  #lacksMs(account: Account): number {
    return ((this.#usedMs(account) - burstMs) * 100) / this.percent;
  }

  #usedMs({ usedMs, atMs }: Account): number {
    return Math.max(0, usedMs - ((this.#clock.monotonicMs() - atMs) * this.percent) / 100);
  }
}

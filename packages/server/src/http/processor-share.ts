import { setTimeout as delay } from "node:timers/promises";
import type { Clock } from "../clock.ts";

/** Time that a partner may have taken when its next request is admitted: others wait as long. */
const burstMs = 5;
const waitMsMax = 1_000;
/** Further requests are refused at once. */
const waitingMax = 1_024;

interface Account {
  usedMs: number;
  atMs: number;
}

/**
 * The part of the event loop's time that the requests of each partner may take at this instance: a leaky bucket of
 * milliseconds. The expected cost is added before a request is read, and corrected by what it took. A partner that has
 * used up its time waits, because answering refusals would cost as much as the requests.
 */
export class ProcessorShare {
  readonly percent: number;
  readonly #clock: Pick<Clock, "monotonicMs">;
  readonly #after: (ms: number) => Promise<unknown>;
  readonly #accounts = new Map<string, Account>();
  readonly #waiting = new Map<string, number>();

  constructor(percent: number, clock: Pick<Clock, "monotonicMs">, after = (ms: number) => delay(ms)) {
    this.percent = percent;
    this.#clock = clock;
    this.#after = after;
  }

  /** Adds the expected cost as soon as there is time for it. @returns false: there was none within a second */
  async admit(id: string, expectedMs: number): Promise<boolean> {
    if (this.#lacksMs(id) > 0 && !(await this.#wait(id))) return false;
    this.add(id, expectedMs);
    return true;
  }

  /** Corrects the cost: below zero if less was taken than expected. */
  add(id: string, ms: number): void {
    const usedMs = this.#usedMs(id) + ms;
    if (usedMs <= 0) this.#accounts.delete(id);
    else this.#accounts.set(id, { usedMs, atMs: this.#clock.monotonicMs() });
  }

  async #wait(id: string): Promise<boolean> {
    const waiting = this.#waiting.get(id) ?? 0;
    if (waiting >= waitingMax) return false;
    this.#waiting.set(id, waiting + 1);
    try {
      const untilMs = this.#clock.monotonicMs() + waitMsMax;
      for (let lacksMs = this.#lacksMs(id); lacksMs > 0; lacksMs = this.#lacksMs(id)) {
        const leftMs = untilMs - this.#clock.monotonicMs();
        if (leftMs <= 0) return false;
        await this.#after(Math.max(1, Math.min(leftMs, lacksMs)));
      }
      return true;
    } finally {
      const others = (this.#waiting.get(id) ?? 1) - 1;
      if (others === 0) this.#waiting.delete(id);
      else this.#waiting.set(id, others);
    }
  }

  /** The time until the partner has some left. */
  #lacksMs(id: string): number {
    return ((this.#usedMs(id) - burstMs) * 100) / this.percent;
  }

  #usedMs(id: string): number {
    const account = this.#accounts.get(id);
    if (account === undefined) return 0;
    const leakedMs = ((this.#clock.monotonicMs() - account.atMs) * this.percent) / 100;
    return Math.max(0, account.usedMs - leakedMs);
  }
}

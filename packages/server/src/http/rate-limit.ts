import { BoundedMap } from "../bounded-map.ts";
import type { Clock } from "../clock.ts";

/** The rest of the limit after a request, and the time until it is reset. */
export interface RateDecision {
  readonly allowed: boolean;
  readonly remaining: number;
  /** Until the full limit is available again. */
  readonly resetS: number;
}

interface Window {
  readonly endsAtMs: number;
  used: number;
}

const windowMs = 60_000;
const keysMax = 20_000;

/**
 * A limit per minute for each key; the minute begins with its first request. The number of keys is bounded: the one
 * whose minute began first is forgotten.
 */
export class RateLimit {
  readonly perMinute: number;
  readonly #clock: Pick<Clock, "monotonicMs">;
  readonly #windows = new BoundedMap<string, Window>(keysMax);

  constructor(perMinute: number, clock: Pick<Clock, "monotonicMs">) {
    this.perMinute = perMinute;
    this.#clock = clock;
  }

  /** @param cost counts as this many requests; one that costs more than the limit is never allowed */
  count(key: string, cost = 1): RateDecision {
    const nowMs = this.#clock.monotonicMs();
    const window = this.#window(key, nowMs);
    const allowed = window.used + cost <= this.perMinute;
    if (allowed) window.used += cost;
    return {
      allowed,
      remaining: Math.max(0, this.perMinute - window.used),
      resetS: Math.max(1, Math.ceil((window.endsAtMs - nowMs) / 1_000)),
    };
  }

  /** Counts what is known only afterwards, such as an answer's size: it may go beyond the limit. */
  add(key: string, cost: number): void {
    this.#window(key, this.#clock.monotonicMs()).used += cost;
  }

  #window(key: string, nowMs: number): Window {
    const known = this.#windows.get(key);
    return known !== undefined && known.endsAtMs > nowMs ? known : this.#begin(key, nowMs);
  }

  #begin(key: string, nowMs: number): Window {
    const window = { endsAtMs: nowMs + windowMs, used: 0 };
    this.#windows.set(key, window);
    return window;
  }
}

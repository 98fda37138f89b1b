/**
 * Measures how long after a fault every partner is notified again: of a command sent after the fault had ended, so that
 * earlier deliveries do not count.
 */
export class Recovery {
  readonly #sinceMs: number;
  readonly #from: number;
  readonly #waiting: Set<number>;
  readonly #done = Promise.withResolvers<number>();

  /** @param from the number of the next command */
  constructor(partners: number, from: number, nowMs = performance.now()) {
    this.#sinceMs = nowMs;
    this.#from = from;
    this.#waiting = new Set(Array(partners).keys());
  }

  delivered(partner: number, no: number, nowMs = performance.now()): void {
    if (no < this.#from || !this.#waiting.delete(partner)) return;
    if (this.#waiting.size === 0) this.#done.resolve(nowMs - this.#sinceMs);
  }

  /** Milliseconds; undefined if some partner got no notification within the bound. */
  async within(boundMs: number): Promise<number | undefined> {
    const timer = Promise.withResolvers<undefined>();
    const timeout = setTimeout(() => timer.resolve(undefined), boundMs);
    try {
      return await Promise.race([this.#done.promise, timer.promise]);
    } finally {
      clearTimeout(timeout);
    }
  }

  /** Partners that have no notification yet. */
  get waiting(): readonly number[] {
    return [...this.#waiting];
  }
}

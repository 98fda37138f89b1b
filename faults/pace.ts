/** The pace of a run: a number of commands per second, without a burst after a delay. */
export class Pace {
  readonly #perMs: number;
  #freeAtMs = 0;

  constructor(perSecond: number) {
    this.#perMs = perSecond / 1_000;
  }

  /** Resolves when so many may be sent. */
  async take(count: number): Promise<void> {
    const nowMs = performance.now();
    const atMs = Math.max(this.#freeAtMs, nowMs);
    this.#freeAtMs = atMs + count / this.#perMs;
    if (atMs > nowMs) await new Promise((resolve) => setTimeout(resolve, atMs - nowMs));
  }
}

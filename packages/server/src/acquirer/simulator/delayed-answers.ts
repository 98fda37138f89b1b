import { type AcquirerAnswer, type AskOptions, NoAnswer } from "../acquirer.ts";

/** The questions that are on their way, each with its answer's time. */
export class DelayedAnswers {
  readonly #timers = new Set<NodeJS.Timeout>();
  /** Ends each caller's wait when the link is closed. */
  readonly #waiting = new Set<(reason: NoAnswer) => void>();

  /**
   * Resolves to the answer, obtained `delayMs` from now, or rejects when the caller's time is over first; then the
   * answer goes to `onLateAnswer`. Without a delay no timer is set: throughput is measured through here.
   */
  answer(obtain: () => AcquirerAnswer, delayMs: number, options: AskOptions): Promise<AcquirerAnswer> {
    if (delayMs === 0) return Promise.resolve(obtain());
    return new Promise((resolve, reject) => {
      this.#waiting.add(reject);
      const inTime = delayMs < options.timeoutMs;
      this.#after(inTime ? delayMs : options.timeoutMs, () => {
        this.#waiting.delete(reject);
        if (inTime) return resolve(obtain());
        reject(new NoAnswer(`The acquirer did not answer within ${options.timeoutMs} ms`));
        if (delayMs !== Number.POSITIVE_INFINITY) {
          this.#after(delayMs - options.timeoutMs, () => options.onLateAnswer(obtain()));
        }
      });
    });
  }

  /** Acts later, unless the link is closed before. */
  later(delayMs: number, act: () => void): void {
    this.#after(delayMs, act);
  }

  close(): void {
    for (const timer of this.#timers) clearTimeout(timer);
    this.#timers.clear();
    for (const end of this.#waiting) end(new NoAnswer("The link to the acquirer was closed"));
    this.#waiting.clear();
  }

  #after(delayMs: number, act: () => void): void {
    const timer = setTimeout(() => {
      this.#timers.delete(timer);
      act();
    }, delayMs);
    this.#timers.add(timer);
  }
}

import type { Logger } from "pino";

/** `commands`: INITs, which may be in doubt. */
export type DueKind = "commands" | "reversals" | "settlements" | "comparisons" | "reports";

export interface DueKinds {
  due(): Promise<readonly DueKind[]>;
}

export interface DueWatchParts {
  readonly store: DueKinds;
  readonly log: Logger;
  /** Takes the due work of a kind. Must not throw. */
  readonly wake: Readonly<Record<DueKind, () => void>>;
}

const checkEveryMs = 1_000;

/** Finds stored work that is due: one question each second for all kinds. */
export class DueWatch {
  readonly #parts: DueWatchParts;
  #timer: NodeJS.Timeout | undefined;
  #isChecking = false;

  constructor(parts: DueWatchParts) {
    this.#parts = parts;
  }

  start(): void {
    this.#timer ??= setInterval(() => void this.#check(), checkEveryMs);
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  async #check(): Promise<void> {
    if (this.#isChecking) return;
    this.#isChecking = true;
    const { store, log, wake } = this.#parts;
    try {
      for (const kind of await store.due()) wake[kind]();
    } catch (error) {
      log.warn({ err: error }, "due work could not be read");
    } finally {
      this.#isChecking = false;
    }
  }
}

/**
 * Runs work that is stored in the database until it is done, by any instance, whenever it is woken. Nothing runs before
 * `start`.
 */
export abstract class DueWork<Item> {
  readonly #name: string;
  readonly #log: Logger;
  readonly #running = new Set<Promise<void>>();
  #claiming: Promise<void> = Promise.resolve();
  #isClaiming = false;
  #again = false;
  #stopped = true;

  /** @param name in the log */
  constructor(name: string, log: Logger) {
    this.#name = name;
    this.#log = log;
  }

  /** Claims due items, so that no other instance has them meanwhile. */
  protected abstract claim(): Promise<readonly Item[]>;

  protected abstract run(item: Item): Promise<void>;

  start(): void {
    this.#stopped = false;
  }

  /** Looks for due work now. */
  wake(): void {
    if (this.#stopped) return;
    this.#again = true;
    if (this.#isClaiming) return;
    this.#isClaiming = true;
    this.#claiming = this.#claimAll();
  }

  /** Claims nothing more, and resolves when running work has ended. */
  async stop(): Promise<void> {
    this.#stopped = true;
    await this.#claiming;
    await Promise.all(this.#running);
  }

  async #claimAll(): Promise<void> {
    while (this.#again && !this.#stopped) {
      this.#again = false;
      try {
        for (const item of await this.claim()) this.#keep(this.run(item));
      } catch (error) {
        this.#log.warn({ err: error }, `${this.#name}: due work could not be read`);
      }
    }
    // In the same microtask as the last look at `#again`: a wake between the two would be lost.
    this.#isClaiming = false;
  }

  #keep(work: Promise<void>): void {
    const kept = work.catch((error: unknown) =>
      this.#log.error({ err: error }, `${this.#name}: failed, and is tried again when it is due`),
    );
    this.#running.add(kept);
    void kept.finally(() => this.#running.delete(kept));
  }
}

/** Seconds before a Reversal or settlement is repeated that the acquirer did not answer; the last one repeats. */
const backoffS = [1, 2, 5, 10, 30, 60] as const;

export function backoffMs(tries: number): number {
  return (backoffS[Math.min(tries, backoffS.length) - 1] ?? 60) * 1_000;
}

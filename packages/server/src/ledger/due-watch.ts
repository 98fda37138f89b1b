import type { Logger } from "pino";

/** `commands`: INITs, which may be in doubt. */
export type DueKind = "commands" | "reversals" | "settlements" | "comparisons" | "reports";

export interface DueKinds {
  /** The kinds of which at least one row is due. */
  due(): Promise<readonly DueKind[]>;
}

export interface DueWatchParts {
  readonly store: DueKinds;
  readonly log: Logger;
  /** Takes the due work of a kind. Must not throw. */
  readonly wake: Readonly<Record<DueKind, () => void>>;
}

const lookEveryMs = 1_000;

/** Finds stored work that is due: one question each second for all kinds. */
export class DueWatch {
  readonly #parts: DueWatchParts;
  #timer: NodeJS.Timeout | undefined;
  #isLooking = false;

  constructor(parts: DueWatchParts) {
    this.#parts = parts;
  }

  start(): void {
    this.#timer ??= setInterval(() => void this.#look(), lookEveryMs);
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  async #look(): Promise<void> {
    if (this.#isLooking) return;
    this.#isLooking = true;
    const { store, log, wake } = this.#parts;
    try {
      for (const kind of await store.due()) wake[kind]();
    } catch (error) {
      log.warn({ err: error }, "due work could not be looked for");
    } finally {
      this.#isLooking = false;
    }
  }
}

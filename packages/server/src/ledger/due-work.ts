import type { Logger } from "pino";

export interface DueWorkOptions<Item> {
  /** The name in the log. */
  readonly name: string;
  readonly log: Logger;
  /** Claims due items, so that no other instance has them meanwhile. */
  claim(): Promise<readonly Item[]>;
  run(item: Item): Promise<void>;
}

/** Runs work that is stored in the database until it is done, by any instance, whenever it is woken. */
export class DueWork<Item> {
  readonly #options: DueWorkOptions<Item>;
  readonly #running = new Set<Promise<void>>();
  #claiming: Promise<void> | undefined;
  #again = false;
  #stopped = true;

  constructor(options: DueWorkOptions<Item>) {
    this.#options = options;
  }

  start(): void {
    this.#stopped = false;
  }

  /** Looks for due work now. */
  wake(): void {
    if (this.#stopped) return;
    this.#again = true;
    this.#claiming ??= this.#claim().finally(() => {
      this.#claiming = undefined;
    });
  }

  /** Claims nothing more, and resolves when running work has ended. */
  async stop(): Promise<void> {
    this.#stopped = true;
    await this.#claiming;
    await Promise.all(this.#running);
  }

  async #claim(): Promise<void> {
    const { name, log, claim: take, run } = this.#options;
    while (this.#again && !this.#stopped) {
      this.#again = false;
      try {
        for (const item of await take()) this.#keep(run(item));
      } catch (error) {
        log.warn({ err: error }, `${name}: due work could not be read`);
      }
    }
  }

  #keep(work: Promise<void>): void {
    const { name, log } = this.#options;
    const kept = work.catch((error: unknown) =>
      log.error({ err: error }, `${name}: failed, and is tried again when it is due`),
    );
    this.#running.add(kept);
    void kept.finally(() => this.#running.delete(kept));
  }
}

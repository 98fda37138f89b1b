import type { Clock, Timers } from "../../clock.ts";

export interface BackpressureOptions {
  /**
   * Whether the event loop is busy: then notifications wait because of this process, not because of their partners.
   */
  readonly isBusy: () => boolean;
  /** The number of notifications by which intake may be ahead of delivery. */
  readonly rowsMax: number;
  readonly clock: Pick<Clock, "monotonicMs">;
  readonly timers: Timers;
}

/** The maximum wait of a batch, whatever delivery does: callers are slowed down, and none is refused. */
const turnMs = 100;
/** A notification not recorded after this time waits for its partner. */
const periodMs = 1_000;

/**
 * Makes intake and delivery take turns while the process cannot do both at full speed. Otherwise intake, which is
 * cheaper, runs ahead: it fills the queues in memory, and the rest is read back from the database.
 */
export class Backpressure {
  readonly #options: BackpressureOptions;
  /** Handed over in this period and in the one before, and not recorded yet. */
  #rows = 0;
  #olderRows = 0;
  #periodEndsMs = 0;
  #turn: Promise<void> | undefined;
  #end: () => void = () => undefined;

  constructor(options: BackpressureOptions) {
    this.#options = options;
  }

  /** A notification was handed over to the worker of this process. */
  handedOver(): void {
    this.#rows += 1;
  }

  /** Outcomes were recorded, including those of notifications that were read from the database. */
  recorded(rows: number): void {
    const older = Math.min(this.#olderRows, rows);
    this.#olderRows -= older;
    this.#rows = Math.max(0, this.#rows - (rows - older));
    if (!this.#isAhead) this.#end();
  }

  /** Called before a batch of intake. @returns a promise that resolves when it may begin; undefined: at once */
  waitForTurn(): Promise<void> | undefined {
    if (this.#turn !== undefined) return this.#turn;
    this.#beginPeriod();
    const isBusy = this.#options.isBusy();
    if (!this.#isAhead || !isBusy) return undefined;
    const { promise, resolve } = Promise.withResolvers<void>();
    const cancel = this.#options.timers.after(turnMs, () => this.#end());
    this.#end = () => {
      cancel();
      this.#turn = undefined;
      this.#end = () => undefined;
      resolve();
    };
    this.#turn = promise;
    return promise;
  }

  get #isAhead(): boolean {
    return this.#rows + this.#olderRows > this.#options.rowsMax;
  }

  #beginPeriod(): void {
    const nowMs = this.#options.clock.monotonicMs();
    if (nowMs < this.#periodEndsMs) return;
    this.#olderRows = nowMs < this.#periodEndsMs + periodMs ? this.#rows : 0;
    this.#rows = 0;
    this.#periodEndsMs = nowMs + periodMs;
  }
}

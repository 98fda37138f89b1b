import { setTimeout as sleep } from "node:timers/promises";
import { ServiceError } from "../../errors.ts";
import { failureKindOf } from "./transaction.ts";

/** Hooks that observe a group commit, and may delay it. */
export interface GroupCommitHooks<Item = { readonly id: string }> {
  /** Called before each batch, which begins when the promise has resolved. Undefined: it begins at once. */
  readonly turn?: () => Promise<void> | undefined;
  readonly onFlush?: (rows: number, durationMs: number, waitingRows: number) => void;
  /** Called for each refused row: the queue was full, or the database was unavailable for too long. */
  readonly onRefused?: () => void;
  /** Called for each added item. @returns what is called when its write has ended */
  readonly onAdded?: ((item: Item) => OnEnded) | undefined;
}

/** @param rows of its batch; 0: it was in none. @param error why it is not known to be durable */
type OnEnded = (rows: number, error?: unknown) => void;

export interface GroupCommitOptions<Item, Result> extends GroupCommitHooks<Item> {
  /** The name in metrics and messages. */
  readonly name: string;
  /** Two items with one key never share a batch: the second waits for the next one. */
  key(item: Item): string;
  bytes(item: Item): number;
  /**
   * Makes a whole batch durable in one transaction, items in key order, and returns a result per key. It is called
   * again with the same items after an unknown COMMIT, so it must be idempotent. An item without a result is a bug.
   */
  commit(items: readonly Item[]): Promise<ReadonlyMap<string, Result>>;
  /**
   * The time for which an item is retried while the database is unavailable; then it is `unavailable`. Infinity:
   * forever.
   */
  readonly giveUpAfterMs: number;
  /** Called for an item that was given up although its COMMIT may have happened. */
  readonly onUnknownCommit?: (item: Item) => void;
  readonly rowsMax?: number;
  readonly bytesMax?: number;
  readonly queueRowsMax?: number;
  readonly queueBytesMax?: number;
  /** Maximum number of concurrent batches. */
  readonly concurrency?: number;
  /**
   * While another batch is in flight, a batch waits for this many rows, for the end of that one, or for 20 ms. Each
   * batch has a fixed cost.
   */
  readonly rowsMin?: number;
  /** The wait of the first item for others when no batch is in flight. For writes that no caller waits for. */
  readonly lingerMs?: number;
}

/** Beyond these a conflict is taken for a bug. */
const conflictsMax = 10;
/** The batch in flight may wait for a lock. */
const rowsMinWaitMs = 20;

interface Waiting<Item, Result> {
  readonly item: Item;
  readonly key: string;
  readonly bytes: number;
  readonly sinceMs: number;
  readonly resolve: (result: Result) => void;
  readonly reject: (error: unknown) => void;
  readonly onEnded: OnEnded | undefined;
}

/**
 * Lets concurrent writes share one transaction, and so one flush to disk. Items that arrive during a batch wait for the
 * next one: under load batches grow by themselves, without load nobody waits. A row that cannot be stored is found by
 * halving the batch, and fails alone.
 */
export class GroupCommit<Item, Result> {
  readonly #options: Required<Omit<GroupCommitOptions<Item, Result>, "onUnknownCommit" | keyof GroupCommitHooks>> &
    Pick<GroupCommitOptions<Item, Result>, "onUnknownCommit" | keyof GroupCommitHooks>;
  #queue: Waiting<Item, Result>[] = [];
  #queueBytes = 0;
  #running = 0;
  #scheduled = false;
  #rowsMinTimer: NodeJS.Timeout | undefined;
  readonly #keysRunning = new Set<string>();
  #idle: (() => void)[] = [];

  constructor(options: GroupCommitOptions<Item, Result>) {
    this.#options = {
      rowsMax: 500,
      bytesMax: 1024 * 1024,
      queueRowsMax: 20_000,
      queueBytesMax: 64 * 1024 * 1024,
      concurrency: 2,
      rowsMin: 1,
      lingerMs: 0,
      ...options,
    };
  }

  /** Rows and bytes that wait for a batch. */
  get waiting(): { readonly rows: number; readonly bytes: number } {
    return { rows: this.#queue.length, bytes: this.#queueBytes };
  }

  /** Resolves once the item is durable. Rejects at once with `unavailable` if the queue is full. */
  add(item: Item): Promise<Result> {
    const bytes = this.#options.bytes(item);
    if (this.#queue.length >= this.#options.queueRowsMax || this.#queueBytes + bytes > this.#options.queueBytesMax) {
      this.#options.onRefused?.();
      return Promise.reject(new ServiceError("unavailable", "Too much waits to be written.", { retryAfterS: 1 }));
    }
    return new Promise<Result>((resolve, reject) => {
      const onEnded = this.#options.onAdded?.(item);
      const key = this.#options.key(item);
      this.#queue.push({ item, key, bytes, sinceMs: performance.now(), resolve, reject, onEnded });
      this.#queueBytes += bytes;
      this.#schedule();
    });
  }

  /** Resolves when nothing is waiting or in flight. */
  async drained(): Promise<void> {
    if (this.#queue.length === 0 && this.#running === 0) return;
    await new Promise<void>((resolve) => this.#idle.push(resolve));
  }

  #schedule(): void {
    if (this.#scheduled || this.#running >= this.#options.concurrency) return;
    if (this.#running > 0 && this.#queue.length < this.#options.rowsMin) {
      this.#rowsMinTimer ??= setTimeout(() => void this.#flush(), rowsMinWaitMs);
      return;
    }
    this.#scheduled = true;
    const flush = () => {
      this.#scheduled = false;
      void this.#flush();
    };
    const { lingerMs, rowsMax } = this.#options;
    if (lingerMs > 0 && this.#queue.length < rowsMax) setTimeout(flush, lingerMs);
    // After the current turn of the event loop, so that all requests it read share one batch.
    else setImmediate(flush);
  }

  async #flush(): Promise<void> {
    clearTimeout(this.#rowsMinTimer);
    this.#rowsMinTimer = undefined;
    if (this.#running >= this.#options.concurrency) return;
    this.#running += 1;
    const turn = this.#options.turn?.();
    if (turn !== undefined) await turn;
    const batch = this.#takeBatch();
    if (batch.length === 0) return this.#ended("nothing written");
    if (this.#queue.length > 0) this.#schedule();
    const startedMs = performance.now();
    await this.#settle(batch);
    this.#options.onFlush?.(batch.length, performance.now() - startedMs, this.#queue.length);
    for (const waiting of batch) this.#keysRunning.delete(waiting.key);
    this.#ended();
  }

  #ended(outcome?: "nothing written"): void {
    this.#running -= 1;
    if (this.#queue.length > 0) {
      // Items left by an empty batch wait for a batch in flight that has their keys: its end schedules them.
      if (outcome === undefined) this.#schedule();
    } else if (this.#running === 0) for (const resolve of this.#idle.splice(0)) resolve();
  }

  #takeBatch(): Waiting<Item, Result>[] {
    const batch: Waiting<Item, Result>[] = [];
    const left: Waiting<Item, Result>[] = [];
    let bytes = 0;
    let taken = 0;
    for (const waiting of this.#queue) {
      // The first is always included, however large: otherwise it would wait forever.
      if (batch.length > 0 && (batch.length >= this.#options.rowsMax || bytes + waiting.bytes > this.#options.bytesMax))
        break;
      taken += 1;
      if (this.#keysRunning.has(waiting.key)) {
        left.push(waiting);
        continue;
      }
      this.#keysRunning.add(waiting.key);
      batch.push(waiting);
      bytes += waiting.bytes;
    }
    this.#queue = left.concat(this.#queue.slice(taken));
    this.#queueBytes -= bytes;
    // Every writer locks rows in key order, so that two batches never wait for each other.
    return batch.sort((a, b) => (a.key < b.key ? -1 : 1));
  }

  /** Settles every item of the batch; never rejects. */
  async #settle(waiting: readonly Waiting<Item, Result>[]): Promise<void> {
    let batch = waiting;
    let conflicts = 0;
    for (let tries = 1; batch.length > 0; tries += 1) {
      try {
        const results = await this.#options.commit(batch.map((waiting) => waiting.item));
        for (const one of batch) this.#answer(one, results, batch.length);
        return;
      } catch (error) {
        const trouble = failureKindOf(error);
        if (trouble === "conflict") conflicts += 1;
        if (trouble === "data" && batch.length > 1) return this.#halve(batch);
        if (trouble === "data" || trouble === "bug" || conflicts >= conflictsMax) {
          return reject(batch, error);
        }
        if (trouble === "connection") {
          batch = this.#giveUpOverdue(batch, error);
          this.#refuseOverdue(error);
        }
        await sleep(trouble === "conflict" ? conflicts * 5 : Math.min(tries * 50, 500));
      }
    }
  }

  async #halve(batch: readonly Waiting<Item, Result>[]): Promise<void> {
    const middle = batch.length >> 1;
    await this.#settle(batch.slice(0, middle));
    await this.#settle(batch.slice(middle));
  }

  #answer(waiting: Waiting<Item, Result>, results: ReadonlyMap<string, Result>, rows: number): void {
    const result = results.get(waiting.key);
    if (result === undefined) {
      reject([waiting], new Error(`${this.#options.name} gave no answer for ${waiting.key}.`));
      return;
    }
    waiting.onEnded?.(rows);
    waiting.resolve(result);
  }

  /**
   * Items that waited as long in the queue were never sent: they leave no doubt, and need not wait for a hanging batch.
   */
  #refuseOverdue(cause: unknown): void {
    const nowMs = performance.now();
    this.#queue = this.#queue.filter((waiting) => {
      if (nowMs - waiting.sinceMs < this.#options.giveUpAfterMs) return true;
      this.#queueBytes -= waiting.bytes;
      this.#refuse(waiting, cause);
      return false;
    });
  }

  #giveUpOverdue(batch: readonly Waiting<Item, Result>[], cause: unknown): readonly Waiting<Item, Result>[] {
    const nowMs = performance.now();
    return batch.filter((waiting) => {
      if (nowMs - waiting.sinceMs < this.#options.giveUpAfterMs) return true;
      this.#options.onUnknownCommit?.(waiting.item);
      this.#refuse(waiting, cause);
      return false;
    });
  }

  #refuse(waiting: Waiting<Item, Result>, cause: unknown): void {
    this.#options.onRefused?.();
    const error = new ServiceError("unavailable", "The database cannot be reached.", { retryAfterS: 5, cause });
    waiting.onEnded?.(0, error);
    waiting.reject(error);
  }
}

function reject<Item, Result>(batch: readonly Waiting<Item, Result>[], error: unknown): void {
  for (const waiting of batch) {
    waiting.onEnded?.(batch.length, error);
    waiting.reject(error);
  }
}

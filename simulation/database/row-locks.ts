/** A transaction's number. */
export type TransactionNo = number;

interface Waiting {
  readonly transaction: TransactionNo;
  readonly keys: readonly string[];
  readonly run: () => void;
}

/** Locks of rows, held until the transaction ends. All that a statement needs are taken at once. */
export class RowLocks {
  readonly #held = new Map<string, TransactionNo>();
  #waiting: Waiting[] = [];

  /** Runs `run` when all are held. @returns whether that was at once */
  acquire(transaction: TransactionNo, keys: readonly string[], run: () => void): boolean {
    const areFree = this.#areFree(transaction, keys);
    if (areFree) this.#take(transaction, keys, run);
    else this.#waiting.push({ transaction, keys, run });
    return areFree;
  }

  /** Waits no longer. @returns whether it still waited */
  giveUp(transaction: TransactionNo): boolean {
    const before = this.#waiting.length;
    this.#waiting = this.#waiting.filter((one) => one.transaction !== transaction);
    return this.#waiting.length < before;
  }

  release(transaction: TransactionNo, keys: readonly string[]): void {
    for (const key of keys) if (this.#held.get(key) === transaction) this.#held.delete(key);
    if (this.#waiting.length === 0) return;
    for (const one of [...this.#waiting]) {
      if (!this.#areFree(one.transaction, one.keys)) continue;
      this.#waiting.splice(this.#waiting.indexOf(one), 1);
      this.#take(one.transaction, one.keys, one.run);
    }
  }

  #areFree(transaction: TransactionNo, keys: readonly string[]): boolean {
    return keys.every((key) => (this.#held.get(key) ?? transaction) === transaction);
  }

  #take(transaction: TransactionNo, keys: readonly string[], run: () => void): void {
    for (const key of keys) this.#held.set(key, transaction);
    run();
  }
}

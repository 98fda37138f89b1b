import type { Instance } from "../instance.ts";
import type { DeliveryStore, Taken } from "./store.ts";

interface Returned {
  readonly instance: Instance;
  readonly delayMs: number;
  readonly taken: Taken[];
  readonly done: Promise<void>;
}

const rowsMax = 1_000;

/** Gives back what was taken and is not sent after all: what comes in one turn of the event loop shares a statement. */
export class Returns {
  readonly #store: Pick<DeliveryStore, "giveBack">;
  readonly #onTrouble: (error: unknown) => void;
  #open: Returned[] = [];

  constructor(store: Pick<DeliveryStore, "giveBack">, onTrouble: (error: unknown) => void) {
    this.#store = store;
    this.#onTrouble = onTrouble;
  }

  /** Resolves when it was given back; a trouble is told, and who hears of it sees to the row. */
  add(instance: Instance, taken: Taken, delayMs: number): Promise<void> {
    const open = this.#open.find(
      (one) => one.delayMs === delayMs && one.instance.epoch === instance.epoch && one.taken.length < rowsMax,
    );
    if (open !== undefined) {
      open.taken.push(taken);
      return open.done;
    }
    const { promise: turn, resolve } = Promise.withResolvers<void>();
    setImmediate(resolve);
    const returned: Returned = { instance, delayMs, taken: [taken], done: turn.then(() => this.#flush(returned)) };
    this.#open.push(returned);
    return returned.done;
  }

  async #flush(returned: Returned): Promise<void> {
    this.#open = this.#open.filter((one) => one !== returned);
    try {
      await this.#store.giveBack(returned.instance, returned.taken, returned.delayMs);
    } catch (error) {
      this.#onTrouble(error);
    }
  }
}

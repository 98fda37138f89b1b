import type { Instance } from "../instance.ts";
import type { DeliveryStore, Taken } from "./store.ts";

const rowsMax = 5_000;
/** What is written and was not handed over yet is unknown for a moment, too: a stray is so at two looks. */
const lookEveryMs = 3_000;
/** A server that did not answer may carry out so much later what it was asked for. */
const doubtMs = 30_000;

/**
 * Rows that stand under our lease although nobody here has them: their claim was committed and its answer lost, or they
 * could not be given back. While this process lives no other instance may take them. So for a while after each such
 * trouble what the database has under our lease is compared with what is in hand, and the rest is made due.
 */
export class Strays {
  readonly #store: Pick<DeliveryStore, "held" | "giveBack">;
  readonly #nowMs: () => number;
  readonly #inHand = new Set<string>();
  #doubtUntilMs = Number.NEGATIVE_INFINITY;
  #lookedMs = Number.NEGATIVE_INFINITY;
  /** Held by nobody here at the last look. */
  #unknown = new Set<string>();

  /** @param nowMs a monotonic clock */
  constructor(store: Pick<DeliveryStore, "held" | "giveBack">, nowMs: () => number) {
    this.#store = store;
    this.#nowMs = nowMs;
  }

  take(taken: Taken): void {
    this.#inHand.add(keyOf(taken));
  }

  /** It was recorded or given back, or neither could be done. */
  leave(taken: Taken): void {
    this.#inHand.delete(keyOf(taken));
  }

  /** What became of a claim, or of what was to be given back, is not known. */
  doubt(): void {
    this.#doubtUntilMs = this.#nowMs() + doubtMs;
  }

  /** Looks, where there is doubt. @returns how many were made due */
  async look(instance: Instance): Promise<number> {
    const nowMs = this.#nowMs();
    if (nowMs >= this.#doubtUntilMs || nowMs - this.#lookedMs < lookEveryMs) return 0;
    this.#lookedMs = nowMs;
    const before = this.#unknown;
    const unknown = (await this.#store.held(instance, rowsMax)).filter((taken) => !this.#inHand.has(keyOf(taken)));
    this.#unknown = new Set(unknown.map(keyOf));
    const strays = unknown.filter((taken) => before.has(keyOf(taken)));
    if (strays.length > 0) await this.#store.giveBack(instance, strays, 0);
    return strays.length;
  }
}

function keyOf({ id, claimNo }: Taken): string {
  return `${id} ${claimNo}`;
}

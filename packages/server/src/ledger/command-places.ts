import type { PartnerId } from "../ids.ts";

/**
 * Places for commands under way. A partner has at most as many as are free beside: alone it has half of them, and each
 * partner more who wants as many as it can get leaves as many again for the others. With a common bound alone, one
 * partner whose cards the acquirer answers slowly had all of them, and every other was refused.
 */
export class CommandPlaces {
  readonly #max: number;
  readonly #takenBy = new Map<PartnerId, number>();
  #taken = 0;

  constructor(max: number) {
    this.#max = max;
  }

  /** Undefined when there is none for this partner now; otherwise what gives it back, once, whenever it is called. */
  take(partnerId: PartnerId): (() => void) | undefined {
    const own = this.#takenBy.get(partnerId) ?? 0;
    if (own >= this.#max - this.#taken) return undefined;
    this.#takenBy.set(partnerId, own + 1);
    this.#taken += 1;
    let held = true;
    return () => {
      if (held) this.#giveBack(partnerId);
      held = false;
    };
  }

  #giveBack(partnerId: PartnerId): void {
    const own = (this.#takenBy.get(partnerId) ?? 1) - 1;
    this.#taken -= 1;
    // Partners come and go: one without a command leaves nothing behind.
    if (own === 0) this.#takenBy.delete(partnerId);
    else this.#takenBy.set(partnerId, own);
  }
}

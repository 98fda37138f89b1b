import type { PartnerId } from "../ids.ts";

/**
 * Places for commands under way. A partner has at most as many as are free beside: alone it has half of them, and each
 * partner more who wants as many as it can get leaves as many again for the others. With a common bound alone, one
 * partner whose cards the acquirer answers slowly had all of them, and every other was refused.
 */
export class CommandSlots {
  readonly #max: number;
  readonly #inUseBy = new Map<PartnerId, number>();
  #inUse = 0;

  constructor(max: number) {
    this.#max = max;
  }

  /** Undefined when there is none for this partner now; otherwise what gives it back, once, whenever it is called. */
  acquire(partnerId: PartnerId): (() => void) | undefined {
    const own = this.#inUseBy.get(partnerId) ?? 0;
    if (own >= this.#max - this.#inUse) return undefined;
    this.#inUseBy.set(partnerId, own + 1);
    this.#inUse += 1;
    let held = true;
    return () => {
      if (held) this.#release(partnerId);
      held = false;
    };
  }

  #release(partnerId: PartnerId): void {
    const own = (this.#inUseBy.get(partnerId) ?? 1) - 1;
    this.#inUse -= 1;
    // Partners come and go: one without a command leaves nothing behind.
    if (own === 0) this.#inUseBy.delete(partnerId);
    else this.#inUseBy.set(partnerId, own);
  }
}

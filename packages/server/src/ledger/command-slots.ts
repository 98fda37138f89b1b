import type { PartnerId } from "../ids.ts";

/**
 * Slots for running commands. A partner may have at most as many as are free: one partner gets half of them, and each
 * further partner at its maximum leaves as many again for the others. With only a common bound, a partner whose cards
 * the acquirer answers slowly took all of them, and every other partner was refused.
 */
export class CommandSlots {
  readonly #max: number;
  readonly #inUseBy = new Map<PartnerId, number>();
  #inUse = 0;
  readonly #idle: (() => void)[] = [];

  constructor(max: number) {
    this.#max = max;
  }

  /**
   * Undefined if this partner gets no slot now; otherwise a function that releases it, which may be called more than
   * once.
   */
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

  /** Resolves when no slot is in use. */
  idle(): Promise<void> {
    return this.#inUse === 0 ? Promise.resolve() : new Promise((resolve) => this.#idle.push(resolve));
  }

  #release(partnerId: PartnerId): void {
    const own = (this.#inUseBy.get(partnerId) ?? 1) - 1;
    this.#inUse -= 1;
    if (this.#inUse === 0) for (const resolve of this.#idle.splice(0)) resolve();
    // A partner without a command leaves no entry behind.
    if (own === 0) this.#inUseBy.delete(partnerId);
    else this.#inUseBy.set(partnerId, own);
  }
}

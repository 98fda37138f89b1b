import type { PartnerId } from "../ids.ts";

export interface SlotLimits {
  readonly slotsMax: number;
  readonly bytesMax: number;
}

/** Counts the POSTs in flight: all together, each partner's, and their bytes. A place taken is given back exactly once. */
export class Slots {
  readonly #limits: SlotLimits;
  readonly #perPartner = new Map<PartnerId, number>();
  #taken = 0;
  #bytes = 0;
  #waiters: (() => void)[] = [];

  constructor(limits: SlotLimits) {
    this.#limits = limits;
  }

  get taken(): number {
    return this.#taken;
  }

  get free(): number {
    return this.#limits.slotsMax - this.#taken;
  }

  get bytes(): number {
    return this.#bytes;
  }

  get bytesFree(): number {
    return Math.max(0, this.#limits.bytesMax - this.#bytes);
  }

  ofPartner(partnerId: PartnerId): number {
    return this.#perPartner.get(partnerId) ?? 0;
  }

  /** Takes a place, or says false. One that is larger than all bytes allowed is let through alone. */
  take(partnerId: PartnerId, bytes: number, partnerMax: number): boolean {
    if (this.#taken >= this.#limits.slotsMax || this.ofPartner(partnerId) >= partnerMax) return false;
    if (this.#bytes > 0 && this.#bytes + bytes > this.#limits.bytesMax) return false;
    this.#taken += 1;
    this.#bytes += bytes;
    this.#perPartner.set(partnerId, this.ofPartner(partnerId) + 1);
    return true;
  }

  give(partnerId: PartnerId, bytes: number): void {
    const left = this.ofPartner(partnerId) - 1;
    if (left < 0) throw new Error(`A place of partner ${partnerId} was given back twice.`);
    if (left === 0) this.#perPartner.delete(partnerId);
    else this.#perPartner.set(partnerId, left);
    this.#taken -= 1;
    this.#bytes -= bytes;
    if (this.#taken === 0) for (const resolve of this.#waiters.splice(0)) resolve();
  }

  /** Resolves when no place is taken. */
  async empty(): Promise<void> {
    if (this.#taken === 0) return;
    await new Promise<void>((resolve) => this.#waiters.push(resolve));
  }

  /** The partners that fill their own bound. */
  *full(partnerMax: (partnerId: PartnerId) => number): Generator<PartnerId> {
    for (const [partnerId, taken] of this.#perPartner) if (taken >= partnerMax(partnerId)) yield partnerId;
  }
}

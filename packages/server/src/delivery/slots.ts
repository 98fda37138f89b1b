import type { PartnerId } from "../ids.ts";

export interface SlotLimits {
  readonly slotsMax: number;
  readonly bytesMax: number;
}

/** A place among the POSTs in flight: given back exactly once. */
export interface Place {
  readonly partnerId: PartnerId;
  readonly bytes: number;
  readonly sinceMs: number;
}

/** An attempt that has held its place for longer is old. */
const oldAfterMs = 1_000;

/**
 * Counts the POSTs in flight: all together, each partner's, and their bytes. While half of all places or more are held
 * by attempts older than a second, a partner that holds such a one gets no further place: those that hang leave room
 * for those that answer.
 */
export class Slots {
  readonly #limits: SlotLimits;
  readonly #nowMs: () => number;
  readonly #perPartner = new Map<PartnerId, number>();
  /** In the order in which they were taken, so that those that grow old stand in front. */
  readonly #young = new Set<Place>();
  readonly #old = new Set<Place>();
  readonly #oldOf = new Map<PartnerId, number>();
  #bytes = 0;
  #waiters: (() => void)[] = [];

  /** @param nowMs a monotonic clock */
  constructor(limits: SlotLimits, nowMs: () => number) {
    this.#limits = limits;
    this.#nowMs = nowMs;
  }

  get taken(): number {
    return this.#young.size + this.#old.size;
  }

  get free(): number {
    return this.#limits.slotsMax - this.taken;
  }

  get bytes(): number {
    return this.#bytes;
  }

  ofPartner(partnerId: PartnerId): number {
    return this.#perPartner.get(partnerId) ?? 0;
  }

  /** Partners that hold a place. */
  *holders(): Generator<PartnerId> {
    yield* this.#perPartner.keys();
  }

  /** Whether it gets no further place because attempts that hang, its own among them, hold too many. */
  holdsUp(partnerId: PartnerId): boolean {
    this.#age();
    return this.#old.size * 2 >= this.#limits.slotsMax && this.#oldOf.has(partnerId);
  }

  /** How many places a partner may still take, the bytes apart. */
  room(partnerId: PartnerId, partnerMax: number): number {
    if (this.holdsUp(partnerId)) return 0;
    return Math.max(0, Math.min(this.free, partnerMax - this.ofPartner(partnerId)));
  }

  /** Takes a place, if there is one. One that is larger than all bytes allowed is let through alone. */
  take(partnerId: PartnerId, bytes: number, partnerMax: number): Place | undefined {
    if (this.room(partnerId, partnerMax) === 0) return undefined;
    if (this.#bytes > 0 && this.#bytes + bytes > this.#limits.bytesMax) return undefined;
    const place = { partnerId, bytes, sinceMs: this.#nowMs() };
    this.#young.add(place);
    this.#bytes += bytes;
    this.#perPartner.set(partnerId, this.ofPartner(partnerId) + 1);
    return place;
  }

  give(place: Place): void {
    const { partnerId, bytes } = place;
    if (this.#old.delete(place)) lower(this.#oldOf, partnerId);
    else if (!this.#young.delete(place)) throw new Error(`A place of partner ${partnerId} was given back twice.`);
    lower(this.#perPartner, partnerId);
    this.#bytes -= bytes;
    if (this.taken === 0) for (const resolve of this.#waiters.splice(0)) resolve();
  }

  /** Resolves when no place is taken. */
  async empty(): Promise<void> {
    if (this.taken === 0) return;
    await new Promise<void>((resolve) => this.#waiters.push(resolve));
  }

  /** Each place grows old once, when somebody asks after that: no timer, and no walk over all of them. */
  #age(): void {
    const oldSinceMs = this.#nowMs() - oldAfterMs;
    for (const place of this.#young) {
      if (place.sinceMs > oldSinceMs) return;
      this.#young.delete(place);
      this.#old.add(place);
      this.#oldOf.set(place.partnerId, (this.#oldOf.get(place.partnerId) ?? 0) + 1);
    }
  }
}

function lower(counts: Map<PartnerId, number>, partnerId: PartnerId): void {
  const left = (counts.get(partnerId) ?? 0) - 1;
  if (left > 0) counts.set(partnerId, left);
  else counts.delete(partnerId);
}

import type { PartnerId } from "../ids.ts";
import { fairRoom, few, isMark } from "./fair-room.ts";

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
/** For so long an attempt that ended says that the others of its partner will end too. */
const livelyForMs = 100;
const forgetEveryMs = 1_000;

interface Holder {
  places: number;
  old: number;
  livelyUntilMs: number;
}

/**
 * Counts the POSTs in flight: all together, each partner's, and their bytes. Those that hang leave room for those that
 * answer: from half of all places on, who holds a few gets more only while it is lively (`fairRoom`), which it is for a
 * tenth of a second after each attempt of its that ended within a second. And while half of all places or more are held
 * by attempts older than a second, a partner that holds such a one gets none.
 */
export class Slots {
  readonly #limits: SlotLimits;
  readonly #nowMs: () => number;
  /** Who holds places, and who was lively lately. */
  readonly #holders = new Map<PartnerId, Holder>();
  /** In the order in which they were taken, so that those that grow old stand in front. */
  readonly #young = new Set<Place>();
  readonly #old = new Set<Place>();
  /** Before that no young one grows old. */
  #ageAtMs = Number.NEGATIVE_INFINITY;
  #forgetAtMs = Number.NEGATIVE_INFINITY;
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
    return this.#holders.get(partnerId)?.places ?? 0;
  }

  /** Partners that hold a place. */
  *holders(): Generator<PartnerId> {
    for (const [partnerId, { places }] of this.#holders) if (places > 0) yield partnerId;
  }

  /** How many places who holds none may take; a few where none is free, as some will be. */
  get roomForNew(): number {
    const { slotsMax } = this.#limits;
    return Math.max(few(slotsMax), fairRoom(slotsMax, this.taken, 0, false));
  }

  /** Whether one of its attempts ended so lately, and so soon, that its others may be expected to. */
  isLively(partnerId: PartnerId): boolean {
    const holder = this.#holders.get(partnerId);
    return holder !== undefined && this.#nowMs() < holder.livelyUntilMs;
  }

  /** Whether it gets no further place because attempts that hang, its own among them, hold too many. */
  holdsUp(partnerId: PartnerId): boolean {
    this.#age(this.#nowMs());
    return this.#holdsUp(this.#holders.get(partnerId));
  }

  /** Whether what comes ahead of its places will find them: as fast as it gave some back, it gets others. */
  keepsPace(partnerId: PartnerId): boolean {
    const { slotsMax } = this.#limits;
    return !this.holdsUp(partnerId) && (this.taken * 2 < slotsMax || this.isLively(partnerId));
  }

  /** How many places a partner may still take, the bytes apart. */
  room(partnerId: PartnerId, partnerMax: number): number {
    return this.#room(this.#holders.get(partnerId), partnerMax, this.#nowMs());
  }

  /** Takes a place, if there is one. One that is larger than all bytes allowed is let through alone. */
  take(partnerId: PartnerId, bytes: number, partnerMax: number): Place | undefined {
    const nowMs = this.#nowMs();
    let holder = this.#holders.get(partnerId);
    if (this.#room(holder, partnerMax, nowMs) === 0) return undefined;
    if (this.#bytes > 0 && this.#bytes + bytes > this.#limits.bytesMax) return undefined;
    if (holder === undefined) {
      holder = { places: 0, old: 0, livelyUntilMs: Number.NEGATIVE_INFINITY };
      this.#holders.set(partnerId, holder);
    }
    const place = { partnerId, bytes, sinceMs: nowMs };
    this.#young.add(place);
    this.#bytes += bytes;
    holder.places += 1;
    return place;
  }

  /**
   * @param ended whether an attempt was made, and ended before its deadline
   * @returns other partners, too, may have room now that had none before, as long as fewer than so many are taken
   */
  give(place: Place, ended: boolean): number {
    const { partnerId, bytes, sinceMs } = place;
    const { slotsMax } = this.#limits;
    const nowMs = this.#nowMs();
    const holder = this.#holders.get(partnerId);
    const { taken } = this;
    const tooManyWereOld = this.#tooManyAreOld;
    const isOld = this.#old.delete(place);
    if (holder === undefined || !(isOld || this.#young.delete(place))) {
      throw new Error(`A place of partner ${partnerId} was given back twice.`);
    }
    holder.places -= 1;
    if (isOld) holder.old -= 1;
    if (ended && nowMs - sinceMs < oldAfterMs) holder.livelyUntilMs = nowMs + livelyForMs;
    this.#bytes -= bytes;
    this.#forget(nowMs);
    if (this.taken === 0) for (const resolve of this.#waiters.splice(0)) resolve();
    if (tooManyWereOld && !this.#tooManyAreOld) return slotsMax;
    return isMark(slotsMax, taken) ? taken : 0;
  }

  /** Resolves when no place is taken. */
  async empty(): Promise<void> {
    if (this.taken === 0) return;
    await new Promise<void>((resolve) => this.#waiters.push(resolve));
  }

  get #tooManyAreOld(): boolean {
    return this.#old.size * 2 >= this.#limits.slotsMax;
  }

  #holdsUp(holder: Holder | undefined): boolean {
    return this.#tooManyAreOld && holder !== undefined && holder.old > 0;
  }

  #room(holder: Holder | undefined, partnerMax: number, nowMs: number): number {
    this.#age(nowMs);
    if (this.#holdsUp(holder)) return 0;
    const held = holder?.places ?? 0;
    const isLively = holder !== undefined && nowMs < holder.livelyUntilMs;
    return Math.max(0, Math.min(partnerMax - held, fairRoom(this.#limits.slotsMax, this.taken, held, isLively)));
  }

  /** Each place grows old once, when somebody asks after that: no timer, and no walk over all of them. */
  #age(nowMs: number): void {
    if (nowMs < this.#ageAtMs) return;
    this.#ageAtMs = nowMs + oldAfterMs;
    for (const place of this.#young) {
      if (place.sinceMs + oldAfterMs > nowMs) {
        this.#ageAtMs = place.sinceMs + oldAfterMs;
        return;
      }
      this.#young.delete(place);
      this.#old.add(place);
      const holder = this.#holders.get(place.partnerId);
      if (holder) holder.old += 1;
    }
  }

  /** Once a second, those that hold nothing and have shown nothing of late. */
  #forget(nowMs: number): void {
    if (nowMs < this.#forgetAtMs) return;
    this.#forgetAtMs = nowMs + forgetEveryMs;
    for (const [partnerId, { places, livelyUntilMs }] of this.#holders) {
      if (places === 0 && livelyUntilMs <= nowMs) this.#holders.delete(partnerId);
    }
  }
}

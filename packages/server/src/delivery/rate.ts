import type { PartnerId } from "../ids.ts";

interface Bucket {
  tokens: number;
  atMs: number;
  perSecond: number;
}

/**
 * Keeps each partner's POSTs a second: a token bucket that holds one second's worth, and one token at least. Every
 * living instance has an equal share of the rate. Over any time of t seconds an instance sends at most share × t, and
 * its bucket.
 */
export class RateLimits {
  readonly #nowMs: () => number;
  readonly #buckets = new Map<PartnerId, Bucket>();
  #instances = 1;

  /** @param nowMs a monotonic clock */
  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
  }

  /** Whether anybody is limited now: then it matters how many instances live. */
  get inUse(): boolean {
    return this.#buckets.size > 0;
  }

  /** Takes a token, or says false. @param perSecond of all instances together; null: unlimited */
  take(partnerId: PartnerId, perSecond: number | null): boolean {
    if (perSecond === null) return true;
    const bucket = this.#filled(partnerId, perSecond);
    if (bucket.tokens < 1) return false;
    bucket.tokens -= 1;
    return true;
  }

  /** Gives a token back: nothing was sent. */
  give(partnerId: PartnerId): void {
    const bucket = this.#buckets.get(partnerId);
    if (bucket !== undefined) bucket.tokens += 1;
  }

  /** How many POSTs may leave now. */
  available(partnerId: PartnerId, perSecond: number | null): number {
    if (perSecond === null) return Number.POSITIVE_INFINITY;
    return Math.floor(this.#filled(partnerId, perSecond).tokens);
  }

  /** Until there is a token; 0 when there is one. */
  waitMs(partnerId: PartnerId, perSecond: number | null): number {
    if (perSecond === null) return 0;
    const { tokens } = this.#filled(partnerId, perSecond);
    return tokens >= 1 ? 0 : ((1 - tokens) / this.#share(perSecond)) * 1_000;
  }

  /** Partners that were limited lately. */
  *limited(): Generator<PartnerId> {
    yield* this.#buckets.keys();
  }

  /** Divides the rates anew, and forgets the buckets that are full: a new one is the same. */
  shareAmong(instances: number): void {
    // What was earned until now was earned at the old share.
    for (const [partnerId, { perSecond }] of this.#buckets) this.#filled(partnerId, perSecond);
    this.#instances = Math.max(1, instances);
    for (const [partnerId, bucket] of this.#buckets) {
      if (bucket.tokens >= this.#capacity(bucket.perSecond)) this.#buckets.delete(partnerId);
    }
  }

  #filled(partnerId: PartnerId, perSecond: number): Bucket {
    const nowMs = this.#nowMs();
    const known = this.#buckets.get(partnerId);
    if (known === undefined) {
      const bucket = { tokens: this.#capacity(perSecond), atMs: nowMs, perSecond };
      this.#buckets.set(partnerId, bucket);
      return bucket;
    }
    const earned = ((nowMs - known.atMs) * this.#share(perSecond)) / 1_000;
    known.tokens = Math.min(this.#capacity(perSecond), known.tokens + earned);
    known.atMs = nowMs;
    known.perSecond = perSecond;
    return known;
  }

  #share(perSecond: number): number {
    return perSecond / this.#instances;
  }

  #capacity(perSecond: number): number {
    return Math.max(1, this.#share(perSecond));
  }
}

import type { PartnerId } from "../ids.ts";

/** Leave for one POST: held until it is answered, or given back when nothing was sent. */
export interface Token {
  readonly partnerId: PartnerId;
  readonly sinceMs: number;
}

interface Bucket {
  tokens: number;
  atMs: number;
  perSecond: number;
  /** In the order in which they were taken. */
  readonly held: Set<Token>;
}

/** A POST that has not arrived by then is one that hangs: it holds nothing back. */
const heldMaxMs = 1_000;
/** Beside one second's worth: without it, a partner that takes a second to answer would not get all of its rate. */
const heldBeside = 1;

/**
 * Keeps each partner's POSTs a second: a token bucket that holds one second's worth, and one token at least. Every
 * living instance has an equal share of the rate. Of any time of t seconds, a partner sees at most share × t arrive,
 * and one bucket, and one more: a token counts for the bucket while it is held, because its POST may arrive at any
 * moment until it is answered. Measured without that, tokens being taken before the commit and before connections
 * are made: 213 arrived within a second where 200 are allowed.
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

  /** Takes a token, if there is one. @param perSecond of all instances together */
  take(partnerId: PartnerId, perSecond: number): Token | undefined {
    const bucket = this.#filled(partnerId, perSecond);
    if (bucket.tokens < 1) return undefined;
    bucket.tokens -= 1;
    const token = { partnerId, sinceMs: this.#nowMs() };
    bucket.held.add(token);
    return token;
  }

  /** Nothing was sent. */
  giveBack(token: Token): void {
    const bucket = this.#settle(token);
    if (bucket !== undefined) bucket.tokens = Math.min(this.#capacity(bucket.perSecond), bucket.tokens + 1);
  }

  /** It was sent, and is answered. */
  spend(token: Token): void {
    this.#settle(token);
  }

  /** How many POSTs may leave now. */
  available(partnerId: PartnerId, perSecond: number | null): number {
    if (perSecond === null) return Number.POSITIVE_INFINITY;
    return Math.floor(this.#filled(partnerId, perSecond).tokens);
  }

  /** Until there is a token, when nothing is answered meanwhile; 0 when there is one. */
  waitMs(partnerId: PartnerId, perSecond: number | null): number {
    if (perSecond === null) return 0;
    const { tokens, held } = this.#filled(partnerId, perSecond);
    if (tokens >= 1) return 0;
    const earnedMs = ((1 - tokens) / this.#share(perSecond)) * 1_000;
    const tooMany = Math.ceil(held.size + 1 - this.#heldAndLeft(perSecond));
    const inTheWay = tooMany > 0 ? [...held][tooMany - 1] : undefined;
    if (inTheWay === undefined) return earnedMs;
    const untilOldMs = inTheWay.sinceMs + heldMaxMs - this.#nowMs();
    return Math.max(earnedMs, untilOldMs);
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
    for (const [partnerId, { tokens, held, perSecond }] of this.#buckets) {
      if (held.size === 0 && tokens >= this.#capacity(perSecond)) this.#buckets.delete(partnerId);
    }
  }

  /** What it held back until now it held back: that counts before it holds nothing any more. */
  #settle(token: Token): Bucket | undefined {
    const bucket = this.#buckets.get(token.partnerId);
    if (bucket === undefined || !bucket.held.has(token)) return undefined;
    this.#filled(token.partnerId, bucket.perSecond);
    // Old by now: then its place in the bucket was filled again.
    return bucket.held.delete(token) ? bucket : undefined;
  }

  #filled(partnerId: PartnerId, perSecond: number): Bucket {
    const nowMs = this.#nowMs();
    const known = this.#buckets.get(partnerId);
    if (known === undefined) {
      const bucket = { tokens: this.#capacity(perSecond), atMs: nowMs, perSecond, held: new Set<Token>() };
      this.#buckets.set(partnerId, bucket);
      return bucket;
    }
    for (const token of known.held) {
      if (token.sinceMs > nowMs - heldMaxMs) break;
      known.held.delete(token);
    }
    const earned = ((nowMs - known.atMs) * this.#share(perSecond)) / 1_000;
    const room = Math.max(0, this.#heldAndLeft(perSecond) - known.held.size);
    known.tokens = Math.min(this.#capacity(perSecond), room, known.tokens + earned);
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

  /** At most so many are held and left, together. */
  #heldAndLeft(perSecond: number): number {
    return this.#share(perSecond) + heldBeside;
  }
}

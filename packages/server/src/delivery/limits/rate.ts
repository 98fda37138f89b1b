import type { PartnerId } from "../../ids.ts";

/** Permission for one POST, counted until it is answered. */
export interface Token {
  readonly partnerId: PartnerId;
  readonly sinceMs: number;
}

interface Bucket {
  tokens: number;
  atMs: number;
  perSecond: number;
  /** In the order of acquisition. */
  readonly outstanding: Set<Token>;
}

/** A POST that has not arrived by then hangs, and holds nothing back. */
const outstandingMaxMs = 1_000;

/**
 * Limits each partner's POSTs per second by a token bucket that holds one second's worth, at least one token. In any t
 * seconds at most rate × t POSTs arrive, plus one bucket, plus one. A token counts for the bucket until its POST is
 * answered, because it may arrive at any moment until then. Measured without that: 213 arrived within a second where
 * 200 are allowed.
 */
export class RateLimits {
  readonly #nowMs: () => number;
  /** Of each partner with a limit, while this worker owns its shard. */
  readonly #buckets = new Map<PartnerId, Bucket>();

  /** @param nowMs a monotonic clock */
  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
  }

  /** Acquires a token, if there is one. @param sinceMs when a bucket that is not known yet was empty */
  acquire(partnerId: PartnerId, perSecond: number, sinceMs: number): Token | undefined {
    const bucket = this.#filled(partnerId, perSecond, sinceMs);
    if (bucket.tokens < 1) return undefined;
    bucket.tokens -= 1;
    const token = { partnerId, sinceMs: this.#nowMs() };
    bucket.outstanding.add(token);
    return token;
  }

  /** @param wasSent false: it was not sent, and another POST may have it */
  end(token: Token, wasSent: boolean): void {
    const bucket = this.#buckets.get(token.partnerId);
    if (bucket === undefined) return;
    // Account for the time until now, while it was still outstanding.
    this.#filled(token.partnerId, bucket.perSecond, 0);
    if (bucket.outstanding.delete(token) && !wasSent) {
      bucket.tokens = Math.min(capacity(bucket.perSecond), bucket.tokens + 1);
    }
  }

  /** Another owner may use up the tokens of these partners. */
  forget(isGone: (partnerId: PartnerId) => boolean): void {
    for (const partnerId of this.#buckets.keys()) if (isGone(partnerId)) this.#buckets.delete(partnerId);
  }

  /** The wait for the next token, if nothing is answered meanwhile; 0 if there is one. */
  waitMs(partnerId: PartnerId, perSecond: number, sinceMs: number): number {
    const { tokens, outstanding } = this.#filled(partnerId, perSecond, sinceMs);
    if (tokens >= 1) return 0;
    const earnedMs = ((1 - tokens) / perSecond) * 1_000;
    const tooMany = Math.ceil(outstanding.size + 1 - outstandingAndLeft(perSecond));
    const inTheWay = tooMany > 0 ? [...outstanding][tooMany - 1] : undefined;
    if (inTheWay === undefined) return earnedMs;
    return Math.max(earnedMs, inTheWay.sinceMs + outstandingMaxMs - this.#nowMs());
  }

  #filled(partnerId: PartnerId, perSecond: number, sinceMs: number): Bucket {
    const nowMs = this.#nowMs();
    const known = this.#buckets.get(partnerId);
    if (known === undefined) {
      const tokens = Math.min(capacity(perSecond), ((nowMs - sinceMs) * perSecond) / 1_000);
      const bucket = { tokens, atMs: nowMs, perSecond, outstanding: new Set<Token>() };
      this.#buckets.set(partnerId, bucket);
      return bucket;
    }
    for (const token of known.outstanding) {
      if (token.sinceMs > nowMs - outstandingMaxMs) break;
      known.outstanding.delete(token);
    }
    const earned = ((nowMs - known.atMs) * perSecond) / 1_000;
    const room = Math.max(0, outstandingAndLeft(perSecond) - known.outstanding.size);
    known.tokens = Math.min(capacity(perSecond), room, known.tokens + earned);
    known.atMs = nowMs;
    known.perSecond = perSecond;
    return known;
  }
}

function capacity(perSecond: number): number {
  return Math.max(1, perSecond);
}

/**
 * The maximum of outstanding and remaining tokens together: one second's worth and one more. Without that one a partner that
 * takes a second to respond would not get its full rate.
 */
function outstandingAndLeft(perSecond: number): number {
  return perSecond + 1;
}

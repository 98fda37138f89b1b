import type { PartnerId } from "../../packages/server/src/ids.ts";

interface Bucket {
  tokens: number;
  atMs: number;
}

/** Clocks differ by 0.2 % at most, and a POST leaves within 50 ms of its token. */
const pace = 1.003;
const delayMs = 50;

/** Counts each partner's POSTs: in any t seconds at most rate × t, one bucket, and one. */
export class RateCheck {
  readonly #buckets = new Map<PartnerId, Bucket>();

  /** @returns whether the rate is kept */
  count(partnerId: PartnerId, perSecond: number, nowMs: number): boolean {
    const capacity = Math.max(1, perSecond) + 1 + (perSecond * delayMs) / 1_000;
    const bucket = this.#buckets.get(partnerId) ?? { tokens: capacity, atMs: nowMs };
    this.#buckets.set(partnerId, bucket);
    bucket.tokens = Math.min(capacity, bucket.tokens + ((nowMs - bucket.atMs) * perSecond * pace) / 1_000) - 1;
    bucket.atMs = nowMs;
    return bucket.tokens >= -1e-6;
  }
}

import type { PartnerId } from "../../packages/server/src/ids.ts";

interface Bucket {
  tokens: number;
  atMs: number;
}

/** The claim of a shard. */
interface Claim {
  readonly epoch: number;
  readonly atMs: number;
}

/** Clocks may differ a little more than they drift, and a POST leaves within 50 ms of its token. */
const paceSlack = 0.001;
const delayMs = 50;

/**
 * Counts each partner's POSTs: in any t seconds at most rate × t, one bucket, and one. In the t seconds since its shard
 * was claimed they are rate × t, and one: the owner before may have used the bucket.
 */
export class RateCheck {
  readonly #buckets = new Map<PartnerId, Bucket>();
  readonly #owned = new Map<PartnerId, Claim & { count: number }>();
  readonly #pace: number;

  /** @param drift the share by which clocks are too fast or too slow */
  constructor(drift: number) {
    this.#pace = 1 + drift + paceSlack;
  }

  /** @returns whether the rate is kept since the claim, under which the POST began */
  countSince({ epoch, atMs }: Claim, partnerId: PartnerId, perSecond: number, nowMs: number): boolean {
    const known = this.#owned.get(partnerId);
    const owned = known?.epoch === epoch ? known : { epoch, atMs, count: 0 };
    this.#owned.set(partnerId, owned);
    owned.count += 1;
    return owned.count <= ((nowMs - owned.atMs + delayMs) * perSecond * this.#pace) / 1_000 + 1;
  }

  /** @returns whether the rate is kept */
  count(partnerId: PartnerId, perSecond: number, nowMs: number): boolean {
    const capacity = Math.max(1, perSecond) + 1 + (perSecond * delayMs) / 1_000;
    const bucket = this.#buckets.get(partnerId) ?? { tokens: capacity, atMs: nowMs };
    this.#buckets.set(partnerId, bucket);
    bucket.tokens = Math.min(capacity, bucket.tokens + ((nowMs - bucket.atMs) * perSecond * this.#pace) / 1_000) - 1;
    bucket.atMs = nowMs;
    return bucket.tokens >= -1e-6;
  }
}

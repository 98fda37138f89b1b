import type { EventKind, EventSink } from "../events.ts";

export interface ShardWatchParts {
  /** Shards that no living worker owns. */
  unowned(): Promise<readonly number[]>;
  /** Whether any instance has reported it since then. */
  wasSentSince(kind: EventKind, sinceMs: number): Promise<boolean>;
  readonly events: EventSink;
  readonly nowMs?: () => number;
}

/** Twice the time of a take-over after a crash. */
const alertAfterMs = 15_000;
const againAfterMs = 600_000;

/**
 * Alerts the operator if a shard has no owner for 15 s: nobody sends for its partners. While shards change hands, now
 * one and now another has none for a moment.
 */
export class ShardWatch {
  readonly #parts: ShardWatchParts;
  readonly #nowMs: () => number;
  /** Since when each of them has had no owner at every look. */
  #since: ReadonlyMap<number, number> = new Map();

  constructor(parts: ShardWatchParts) {
    this.#parts = parts;
    this.#nowMs = parts.nowMs ?? (() => performance.now());
  }

  async look(): Promise<void> {
    const { unowned, wasSentSince, events } = this.#parts;
    const free = await unowned();
    const nowMs = this.#nowMs();
    this.#since = new Map(free.map((shard) => [shard, this.#since.get(shard) ?? nowMs]));
    const forMs = nowMs - Math.min(nowMs, ...this.#since.values());
    if (forMs < alertAfterMs || (await wasSentSince("shards_unowned", Date.now() - againAfterMs))) return;
    const detail = { shards: free.length, seconds: Math.floor(forMs / 1_000) };
    events.record({ kind: "shards_unowned", partnerId: null, subjectId: null, detail });
  }
}

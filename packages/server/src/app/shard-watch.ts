import type { EventKind, EventSink } from "../events.ts";

export interface ShardWatchParts {
  /** Shards that no living worker owns. */
  unowned(): Promise<number>;
  /** Whether any instance has reported it since then. */
  wasSentSince(kind: EventKind, sinceMs: number): Promise<boolean>;
  readonly events: EventSink;
  readonly nowMs?: () => number;
}

/** Twice the time of a take-over after a crash. */
const alertAfterMs = 15_000;
const againAfterMs = 600_000;

/** Alerts the operator if shards have no owner for 15 s: nobody sends for their partners. */
export class ShardWatch {
  readonly #parts: ShardWatchParts;
  readonly #nowMs: () => number;
  #sinceMs: number | undefined;

  constructor(parts: ShardWatchParts) {
    this.#parts = parts;
    this.#nowMs = parts.nowMs ?? (() => performance.now());
  }

  async look(): Promise<void> {
    const { unowned, wasSentSince, events } = this.#parts;
    const shards = await unowned();
    if (shards === 0) {
      this.#sinceMs = undefined;
      return;
    }
    this.#sinceMs ??= this.#nowMs();
    const forMs = this.#nowMs() - this.#sinceMs;
    if (forMs < alertAfterMs || (await wasSentSince("shards_unowned", Date.now() - againAfterMs))) return;
    const detail = { shards, seconds: Math.floor(forMs / 1_000) };
    events.record({ kind: "shards_unowned", partnerId: null, subjectId: null, detail });
  }
}

import type { LeaseId, NotificationId } from "../ids.ts";
import type { Partner } from "../partners/partner.ts";
import { shardOf } from "../shard.ts";
import { keyOf } from "./order.ts";
import type { Slot } from "./scheduler.ts";
import type { Delivery, Postponement } from "./store.ts";

/** One attempt: on the wire, and then being recorded. */
export interface Sending {
  readonly delivery: Delivery;
  readonly partner: Partner;
  readonly slot: Slot;
  readonly epoch: number;
  readonly leaseId: LeaseId;
  readonly isProbe: boolean;
  /** By the monotonic clock: the attempt has ended by then. */
  readonly deadlineMs: number;
  isOnWire: boolean;
}

/** The time for recording the outcome of an attempt during which its shard is released. */
const recordingMs = 1_000;

/** The attempts of a worker that are on the wire or unrecorded, one for each notification. */
export class Sendings {
  readonly #sending = new Map<NotificationId, Sending>();

  get size(): number {
    return this.#sending.size;
  }

  add(sending: Sending): void {
    this.#sending.set(sending.delivery.id, sending);
  }

  /** Ends this very attempt, and not that of a later ownership, which may be in flight again. */
  end(delivery: Delivery): void {
    if (this.#sending.get(delivery.id)?.delivery === delivery) this.#sending.delete(delivery.id);
  }

  isOnWire(shard: number): boolean {
    for (const { delivery, isOnWire } of this.#sending.values()) {
      if (isOnWire && shardOf(delivery.partnerId) === shard) return true;
    }
    return false;
  }

  /** Attempts of these shards become due for the next owner when they have certainly ended. */
  putOff(shards: ReadonlySet<number>, nowMs: number): readonly Postponement[] {
    return [...this.#sending.values()].flatMap(({ delivery, deadlineMs }) =>
      shards.has(shardOf(delivery.partnerId))
        ? [{ ...keyOf(delivery), delayMs: Math.max(0, deadlineMs - nowMs) + recordingMs }]
        : [],
    );
  }
}

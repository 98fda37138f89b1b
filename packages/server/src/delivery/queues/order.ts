import type { Clock, Timers } from "../../clock.ts";
import type { NotificationId } from "../../ids.ts";
import type { Delivery } from "../delivery.ts";
import { type DeliveryStore, keyOf, leftMs, type Precedence } from "../store.ts";

/** The decision about a delivery that follows others. */
export type OrderDecision =
  | { readonly kind: "leaves"; readonly outOfOrder: boolean }
  /** An earlier one is in memory: check again when it has left memory. */
  | { readonly kind: "waits"; readonly after: NotificationId }
  /** An earlier one is only in the database: put this one off there. */
  | { readonly kind: "postpone"; readonly delayMs: number };

/** After this time it is sent before predecessors that are only in the database, and says so in a header. */
export const orderWaitMaxMs = 600_000;
const delayMinMs = 500;
const delayMaxMs = 30_000;

/**
 * Decides whether a delivery may leave. A blocked one waits in memory only for a delivery that is in memory too.
 * Otherwise it is postponed in the database by a tenth of its age, so that blocked rows never fill a queue.
 */
export function judgeOrder({ after, ageMs }: Precedence, isInMemory: (id: NotificationId) => boolean): OrderDecision {
  if (after === undefined) return { kind: "leaves", outOfOrder: false };
  // One in memory is being sent, or is next.
  if (isInMemory(after)) return { kind: "waits", after };
  if (ageMs >= orderWaitMaxMs) return { kind: "leaves", outOfOrder: true };
  const delayMs = Math.min(Math.max(ageMs / 10, delayMinMs), delayMaxMs, orderWaitMaxMs - ageMs);
  return { kind: "postpone", delayMs };
}

export interface OrderParts {
  readonly store: Pick<DeliveryStore, "preceding" | "postpone">;
  readonly clock: Pick<Clock, "monotonicMs">;
  readonly timers: Timers;
  readonly queues: OrderedQueues;
  readonly onTrouble: (error: unknown) => void;
}

/** The queues that the deliveries are in. */
export interface OrderedQueues {
  has(id: NotificationId): boolean;
  /** Whether this very delivery is in memory, and not another round or reading of it. */
  holds(delivery: Delivery): boolean;
  makeReady(delivery: Delivery): void;
  release(delivery: Delivery, againInMs?: number): void;
}

const askMax = 256;
const retryMs = 250;

/**
 * Holds the deliveries of one home that follow others until they may leave. Being blocked is not stored: a DELETE that
 * unblocks cannot see a successor that is not committed yet. So each is checked again.
 *
 * ```
 * checking ──(nothing earlier is pending, or for ten minutes only in the database)──► leaves
 * checking ──(an earlier one is in memory)──► waits ──(that one has left memory)──► checking
 * checking ──(an earlier one is only in the database)──► postponed there, and released
 * checking ──(it is no longer pending: a late outcome of another worker ended it)──► released
 * ```
 */
export class DeliveryOrder {
  readonly #parts: OrderParts;
  #toAsk: Delivery[] = [];
  #isAsking = false;
  readonly #waiting = new Map<NotificationId, Delivery[]>();
  readonly #outOfOrder = new Set<NotificationId>();

  constructor(parts: OrderParts) {
    this.#parts = parts;
  }

  /** Checks whether these may leave. They are in memory. */
  check(deliveries: readonly Delivery[]): void {
    this.#toAsk.push(...deliveries);
    if (this.#isAsking) return;
    this.#isAsking = true;
    this.#parts.timers.after(0, () => void this.#checkAll());
  }

  /** This one has left memory: the deliveries that waited for it are checked again. */
  ended(id: NotificationId): void {
    this.#outOfOrder.delete(id);
    const followers = this.#waiting.get(id);
    if (followers === undefined) return;
    this.#waiting.delete(id);
    this.check(followers);
  }

  /** Whether it leaves before an earlier one was accepted or parked. */
  isOutOfOrder(id: NotificationId): boolean {
    return this.#outOfOrder.has(id);
  }

  async #checkAll(): Promise<void> {
    const { store, clock, timers, queues, onTrouble } = this.#parts;
    while (this.#toAsk.length > 0) {
      let undecided = this.#toAsk.splice(0, askMax).filter((delivery) => queues.holds(delivery));
      try {
        const blocked = undecided.length > 0 ? this.#decide(undecided, await store.preceding(undecided)) : [];
        undecided = blocked.map(({ delivery }) => delivery);
        const sentMs = clock.monotonicMs();
        if (blocked.length > 0)
          await store.postpone(blocked.map(({ delivery, delayMs }) => ({ ...keyOf(delivery), delayMs })));
        for (const { delivery, delayMs } of blocked) queues.release(delivery, leftMs(delayMs, sentMs, clock));
      } catch (error) {
        onTrouble(error);
        this.#toAsk.push(...undecided);
        await new Promise<void>((resolve) => void timers.after(retryMs, resolve));
      }
    }
    this.#isAsking = false;
  }

  /** @returns the deliveries to postpone in the database */
  #decide(asked: readonly Delivery[], answers: readonly (Precedence | undefined)[]) {
    const { queues } = this.#parts;
    const blocked: { readonly delivery: Delivery; readonly delayMs: number }[] = [];
    // Each that may leave is put before those that wait, so the first one asked for is added last.
    for (const [at, delivery] of [...asked.entries()].reverse()) {
      // Its shard was released meanwhile.
      if (!queues.holds(delivery)) continue;
      const answer = answers[at];
      if (answer === undefined) {
        queues.release(delivery);
        continue;
      }
      const verdict = judgeOrder(answer, (id) => queues.has(id));
      if (verdict.kind === "postpone") blocked.push({ delivery, delayMs: verdict.delayMs });
      else if (verdict.kind === "waits") this.#wait(delivery, verdict.after);
      else {
        if (verdict.outOfOrder) this.#outOfOrder.add(delivery.id);
        queues.makeReady(delivery);
      }
    }
    return blocked;
  }

  #wait(delivery: Delivery, after: NotificationId): void {
    const others = this.#waiting.get(after);
    if (others === undefined) this.#waiting.set(after, [delivery]);
    else others.push(delivery);
  }
}

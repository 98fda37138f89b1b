import type { Clock, Timers } from "../clock.ts";
import type { NotificationId } from "../ids.ts";
import type { Delivery, DeliveryKey, DeliveryStore, Precedence, PutOff } from "./store.ts";

/** What becomes of a delivery that follows others. */
export type OrderDecision =
  | { readonly kind: "leaves"; readonly outOfOrder: boolean }
  /** An earlier one is in hand: asked again when that one's outcome is recorded. */
  | { readonly kind: "waits"; readonly after: NotificationId }
  /** An earlier one is in the database alone: put off there. */
  | { readonly kind: "put_off"; readonly delayMs: number };

/** After so long it leaves before what should come first, and says so in a header. */
export const orderWaitMaxMs = 600_000;
const delayMinMs = 500;
const delayMaxMs = 30_000;

/**
 * What is left of a delay that a statement wrote, in milliseconds; the statement was sent at `sentMs`. The database
 * counts the delay from when it ran the statement. Counted from the answer, which may come much later, the delivery
 * would be due long before it is looked for.
 */
export function leftMs(delayMs: number, sentMs: number, clock: Pick<Clock, "monotonicMs">): number {
  return Math.max(0, sentMs + delayMs - clock.monotonicMs());
}

/**
 * Whether a delivery may leave. A blocked one waits in memory only for what is in memory too; it is put off in the
 * database by a tenth of its age otherwise, so that blocked rows never fill a queue.
 */
export function judgeOrder({ after, ageMs }: Precedence, isInHand: (id: NotificationId) => boolean): OrderDecision {
  if (after === undefined) return { kind: "leaves", outOfOrder: false };
  if (ageMs >= orderWaitMaxMs) return { kind: "leaves", outOfOrder: true };
  if (isInHand(after)) return { kind: "waits", after };
  const delayMs = Math.min(Math.max(ageMs / 10, delayMinMs), delayMaxMs, orderWaitMaxMs - ageMs);
  return { kind: "put_off", delayMs };
}

export interface OrderParts {
  readonly store: Pick<DeliveryStore, "preceding" | "putOff">;
  readonly clock: Pick<Clock, "monotonicMs">;
  readonly timers: Timers;
  readonly isInHand: (id: NotificationId) => boolean;
  /** Whether this very delivery is in hand, and not another round or reading of it. */
  readonly holds: (delivery: Delivery) => boolean;
  readonly onMayLeave: (delivery: Delivery) => void;
  /** It was put off in the database. */
  readonly onPutOff: (delivery: Delivery, delayMs: number) => void;
  /** It is pending no more: somebody's late outcome ended it. */
  readonly onGone: (delivery: Delivery) => void;
  readonly onTrouble: (error: unknown) => void;
}

interface Blocked {
  readonly delivery: Delivery;
  readonly putOff: PutOff;
}

const askMax = 256;
const retryMs = 250;

/**
 * Holds the deliveries that follow others until they may leave. Nothing is stored about a delivery being blocked: a
 * DELETE that unblocks cannot see a successor that is not committed yet. So each is asked for again.
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

  /** Asks whether these may leave. They are in hand. */
  check(deliveries: readonly Delivery[]): void {
    this.#toAsk.push(...deliveries);
    if (this.#isAsking || this.#toAsk.length === 0) return;
    this.#isAsking = true;
    this.#parts.timers.after(0, () => void this.#checkAll());
  }

  /** The outcome of this one is recorded: what waited for it is asked for again. */
  ended(id: NotificationId): void {
    this.#outOfOrder.delete(id);
    const followers = this.#waiting.get(id);
    if (followers === undefined) return;
    this.#waiting.delete(id);
    this.check(followers);
  }

  /** It leaves before an earlier one was accepted or parked. */
  isOutOfOrder(id: NotificationId): boolean {
    return this.#outOfOrder.has(id);
  }

  async #checkAll(): Promise<void> {
    const { store, clock, timers, holds, onPutOff, onTrouble } = this.#parts;
    while (this.#toAsk.length > 0) {
      let unsettled = this.#toAsk.splice(0, askMax).filter(holds);
      try {
        const blocked = unsettled.length > 0 ? this.#settle(unsettled, await store.preceding(unsettled)) : [];
        unsettled = blocked.map(({ delivery }) => delivery);
        const sentMs = clock.monotonicMs();
        if (blocked.length > 0) await store.putOff(blocked.map(({ putOff }) => putOff));
        for (const { delivery, putOff } of blocked) onPutOff(delivery, leftMs(putOff.delayMs, sentMs, clock));
      } catch (error) {
        onTrouble(error);
        this.#toAsk.push(...unsettled);
        await new Promise<void>((resolve) => void timers.after(retryMs, resolve));
      }
    }
    this.#isAsking = false;
  }

  /** @returns what is to be put off in the database */
  #settle(asked: readonly Delivery[], answers: readonly (Precedence | undefined)[]): readonly Blocked[] {
    const { isInHand, holds, onMayLeave, onGone } = this.#parts;
    const blocked: Blocked[] = [];
    // Each that may leave is put before those that wait: the one that was asked for first comes last.
    for (const [at, delivery] of [...asked.entries()].reverse()) {
      // Its shard was given away meanwhile.
      if (!holds(delivery)) continue;
      const answer = answers[at];
      if (answer === undefined) {
        onGone(delivery);
        continue;
      }
      const verdict = judgeOrder(answer, isInHand);
      if (verdict.kind === "put_off")
        blocked.push({ delivery, putOff: { ...keyOf(delivery), delayMs: verdict.delayMs } });
      else if (verdict.kind === "waits") this.#wait(delivery, verdict.after);
      else {
        if (verdict.outOfOrder) this.#outOfOrder.add(delivery.id);
        onMayLeave(delivery);
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

/** A delivery as outcomes name it. */
export function keyOf({ partnerId, id, round, attemptsMade }: Delivery): DeliveryKey {
  return { partnerId, id, round, attemptsMade };
}

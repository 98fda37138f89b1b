import type { Timers } from "../../clock.ts";
import type { PartnerId } from "../../ids.ts";
import type { Delivery } from "../delivery.ts";
import type { Hint } from "../store.ts";
import type { DeliveryWorker } from "./worker.ts";

export interface HintsParts {
  /** Undefined: this process does not send. */
  readonly worker: Pick<DeliveryWorker, "owns" | "offer" | "wake" | "tick"> | undefined;
  /** Notifies the other processes; the message may be lost. */
  readonly announce: (payload: string) => Promise<void>;
  readonly timers: Timers;
  /** The worker of this process has been given a delivery. */
  readonly onOffered?: () => void;
  readonly onTrouble: (error: unknown) => void;
}

/** The limit of a NOTIFY: 8,000 bytes in PostgreSQL. */
const payloadCharsMax = 7_000;
const announceEveryMs = 5;
/** Maximum number of announcements in flight. Beyond it, hints are collected until one is answered. */
const announcingMax = 4;
/** Maximum number of queues to announce while the database is slow. The rest is left to the sweep. */
const namesMax = 10_000;

/**
 * Passes on what is due: to the worker of this process if that owns the partner, with the content; otherwise to the
 * other processes, by name only: at once, then every 5 ms. Any hint may be lost; the owner's sweep finds the row.
 */
export class Hints {
  readonly #parts: HintsParts;
  /** Hints to announce, by partner and queue. */
  #hints = new Map<string, Hint>();
  #announcing = 0;
  /** The next announcement waits for its time. */
  #isWaiting = false;

  constructor(parts: HintsParts) {
    this.#parts = parts;
  }

  /**
   * Passes on a delivery that was just made durable. Never throws: its result is committed, whatever delivery does.
   *
   * @param begunMs by the monotonic clock, before it was written
   */
  offer(delivery: Delivery, begunMs: number): void {
    const { partnerId, queue, scheduleStartMs: sinceMs } = delivery;
    try {
      const owner = this.#ownerOf(partnerId);
      if (owner === undefined) {
        this.#announce({ partnerId, queue, sinceMs });
        return;
      }
      owner.offer(delivery, begunMs);
      this.#parts.onOffered?.();
    } catch (error) {
      this.#parts.onTrouble(error);
    }
  }

  /** Something of the partner is due. Never throws. */
  due(hint: Hint): void {
    try {
      const owner = this.#ownerOf(hint.partnerId);
      if (owner !== undefined) owner.wake(hint);
      else this.#announce(hint);
    } catch (error) {
      this.#parts.onTrouble(error);
    }
  }

  /** Another process sent this. */
  received(payload: string): void {
    const hints = readPayload(payload);
    if (hints === undefined) this.#parts.worker?.tick();
    for (const hint of hints ?? []) this.#ownerOf(hint.partnerId)?.wake(hint);
  }

  #ownerOf(partnerId: PartnerId) {
    const { worker } = this.#parts;
    return worker?.owns(partnerId) ? worker : undefined;
  }

  #announce(hint: Hint): void {
    const name = `${hint.partnerId} ${hint.queue}`;
    const before = this.#hints.get(name);
    if (before === undefined && this.#hints.size >= namesMax) return;
    this.#hints.set(name, before === undefined ? hint : earlier(before, hint));
    if (this.#isWaiting) return;
    this.#isWaiting = true;
    this.#send();
    this.#parts.timers.after(announceEveryMs, () => {
      this.#isWaiting = false;
      this.#send();
    });
  }

  #send(): void {
    if (this.#announcing >= announcingMax) return;
    let payload = "";
    for (const { partnerId, queue, sinceMs } of this.#hints.values()) {
      const key = JSON.stringify([partnerId, queue, sinceMs].filter((part) => part !== undefined));
      if (payload.length + key.length > payloadCharsMax) {
        this.#announceOne(payload);
        payload = "";
      }
      payload += payload === "" ? key : `,${key}`;
    }
    this.#hints = new Map();
    if (payload !== "") this.#announceOne(payload);
  }

  #announceOne(hints: string): void {
    this.#announcing += 1;
    this.#parts
      .announce(`[${hints}]`)
      .catch(this.#parts.onTrouble)
      .finally(() => {
        this.#announcing -= 1;
        if (!this.#isWaiting) this.#send();
      });
  }
}

/** Merges two hints to one queue. If one does not know since when, the result does not either. */
function earlier(one: Hint, other: Hint): Hint {
  if (one.sinceMs === undefined) return one;
  return other.sinceMs === undefined || other.sinceMs < one.sinceMs ? other : one;
}

function readPayload(payload: string): readonly Hint[] | undefined {
  try {
    const hints = JSON.parse(payload) as readonly (readonly [PartnerId, string?, number?])[];
    return hints.map(([partnerId, queue, sinceMs]) => ({
      partnerId,
      ...(queue !== undefined && { queue }),
      ...(sinceMs !== undefined && { sinceMs }),
    }));
  } catch {
    return undefined;
  }
}
